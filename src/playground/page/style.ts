/** @file Styles that the playground adds to those of the plan viewer. */

export const PLAYGROUND_STYLE = `
nav{display:flex;gap:4px}
nav a{color:var(--text);text-decoration:none;padding:4px 10px;border-radius:6px;border:1px solid transparent}
nav a:hover{border-color:var(--line)}
nav a[aria-current=page]{background:var(--mark);font-weight:600}
.about{margin:0;padding:12px 14px 0;max-width:2200px;margin:0 auto;color:var(--quiet)}
.controls{display:flex;flex-wrap:wrap;gap:8px;align-items:center}
.controls label{display:flex;gap:6px;align-items:center;color:var(--quiet)}
.controls input[type=number]{width:86px}
label.controls{margin-bottom:8px}
button.main{background:var(--accent);border-color:var(--accent);color:var(--card);font-weight:600;min-width:84px}
.losses{display:block;width:100%;height:260px}
.loss-key{display:inline-flex;align-items:center;gap:6px;margin-right:14px}
.loss-key svg{width:26px;height:10px}
.hashes{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 12px;margin:6px 0 0}
.hashes dt{color:var(--quiet)}
.hashes dd{margin:0;font:12px/1.6 ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.verdict{font-weight:600;margin:8px 0 0}
.verdict::before{content:"= ";font-family:ui-monospace,Menlo,Consolas,monospace}
.verdict.differs{color:var(--bad)}
.verdict.differs::before{content:"≠ "}
.editor .cm-editor{border:1px solid var(--line);border-radius:6px;overflow:hidden}
.keys-note{margin:6px 0 0;color:var(--quiet);font-size:12px}
:root{--code-keyword:#8a3ffc;--code-string:#0e6027;--code-number:#9f1853;--code-type:#00539a;--code-call:#684e00}
:root[data-theme=dark]{--code-keyword:#be95ff;--code-string:#6fdc8c;--code-number:#ff7eb6;--code-type:#82cfff;--code-call:#f1c21b}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.complaint{border-left:5px solid var(--bad);margin:8px 0 0;padding:6px 12px;white-space:pre-wrap;overflow-wrap:anywhere;
  font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.status{min-height:1.5em;margin:6px 0 0;color:var(--quiet)}
.tabs{display:flex;gap:4px;margin-bottom:6px}
.tabs button[aria-selected=true]{background:var(--mark);font-weight:600}
.text{margin:0;max-height:min(60vh,460px);overflow:auto;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;white-space:pre}
.stale :is(.map,.chart,.curve,.program,.sentence,.figures,.story,.text){opacity:.45}
.held{display:flex;flex-wrap:wrap;gap:6px 10px;align-items:center;margin:0 0 8px;padding:8px 12px;border-left:5px solid var(--accent);background:var(--mark)}
@media (min-width:1000px){main.wide{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}
  .column{display:flex!important;flex-direction:column}.column>.fills{display:flex;flex-direction:column;flex:1 1 auto;min-height:300px}
  .fills>.program{flex:1 1 0;height:auto}}
@media (max-width:999px){.early-1{order:-4}.early-2{order:-3}.early-3{order:-2}.early-4{order:-1}}
@media (max-width:480px){.losses{height:220px}.about{padding:8px 10px 0}}
`;
