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
.key{display:inline-flex;align-items:center;gap:6px;margin-right:14px}
.key svg{width:26px;height:10px}
.hashes{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 12px;margin:6px 0 0}
.hashes dt{color:var(--quiet)}
.hashes dd{margin:0;font:12px/1.6 ui-monospace,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.verdict{font-weight:600;margin:8px 0 0}
.verdict::before{content:"= ";font-family:ui-monospace,Menlo,Consolas,monospace}
.verdict.differs{color:var(--bad)}
.verdict.differs::before{content:"≠ "}
.editor{position:relative;border:1px solid var(--line);border-radius:6px;overflow:auto;max-height:min(70vh,640px);
  font:13px/20px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--card);tab-size:2}
.editor:focus-within{outline:2px solid var(--accent);outline-offset:1px}
.sheet{display:grid;min-width:max-content;padding:8px 0}
.sheet>*{grid-area:1/1;font:inherit;white-space:pre;margin:0}
.sheet pre{pointer-events:none;position:relative;z-index:1}
.sheet textarea{border:0;padding:0 16px 0 52px;background:none;color:transparent;caret-color:var(--text);resize:none;
  overflow:hidden;outline:0;width:100%;border-radius:0}
.sheet textarea::selection{background:color-mix(in srgb,var(--accent) 35%,transparent)}
.line{display:block;padding:0 16px 0 0;min-height:20px}
.line::before{content:attr(data-n);display:inline-block;width:40px;margin-right:12px;text-align:right;color:var(--quiet)}
.line.bad{background:color-mix(in srgb,var(--bad) 16%,transparent);box-shadow:inset 3px 0 var(--bad)}
.line.bad::before{color:var(--bad);font-weight:700}
.line.here{background:var(--mark);box-shadow:inset 3px 0 var(--accent)}
.line .tail{color:var(--bad);margin-left:24px;font-style:italic}
.t-keyword{color:#8a3ffc}.t-string{color:#0e6027}.t-number{color:#9f1853}.t-comment{color:var(--quiet);font-style:italic}
.t-type{color:#00539a}.t-call{color:#684e00}
:root[data-theme=dark] .t-keyword{color:#be95ff}:root[data-theme=dark] .t-string{color:#6fdc8c}
:root[data-theme=dark] .t-number{color:#ff7eb6}:root[data-theme=dark] .t-type{color:#82cfff}
:root[data-theme=dark] .t-call{color:#f1c21b}
.complaint{border-left:5px solid var(--bad);margin:8px 0 0;padding:6px 12px;white-space:pre-wrap;overflow-wrap:anywhere;
  font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.status{min-height:1.5em;margin:6px 0 0;color:var(--quiet)}
.tabs{display:flex;gap:4px;margin-bottom:6px}
.tabs button[aria-selected=true]{background:var(--mark);font-weight:600}
.text{margin:0;max-height:min(60vh,460px);overflow:auto;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;white-space:pre}
.stale{opacity:.55}
@media (min-width:1000px){main.wide{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}
@media (max-width:999px){.early-1{order:-4}.early-2{order:-3}.early-3{order:-2}.early-4{order:-1}}
@media (max-width:480px){.losses{height:220px}.about{padding:8px 10px 0}}
`;
