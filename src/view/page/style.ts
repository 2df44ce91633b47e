/** @file How the page looks: one column on a phone, two from 1000 pixels on, light and dark by the same variables. */

/** Colours by name. */
export const LIGHT =
  "--bg:#f4f6f8;--card:#fff;--text:#1b2430;--quiet:#5a6675;--line:#d5dae1;--accent:#0b5cad;--mark:#e3edf8;--bad:#b3261e";
export const DARK =
  "--bg:#0e1116;--card:#14181f;--text:#e6e9ef;--quiet:#9aa4b2;--line:#343c49;--accent:#7db7ff;--mark:#22334a;--bad:#ff8a65";

export const STYLE = `
:root{${LIGHT};color-scheme:light;font:14px/1.45 system-ui,sans-serif}
:root[data-theme=dark]{${DARK};color-scheme:dark}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text)}
header{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center;padding:8px 14px;background:var(--card);
  border-bottom:1px solid var(--line);position:sticky;top:0;z-index:3}
h1{font-size:16px;margin:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;max-width:40vw}
h2{font-size:12px;margin:0 0 6px;color:var(--quiet);font-weight:600;letter-spacing:.03em}
h3{font-size:15px;margin:0 0 6px;overflow-wrap:anywhere}
h3 small{color:var(--quiet);font-weight:400;margin-left:8px;display:inline-block}
h3:has(.dot){position:relative;padding-left:19px}
h3 .dot{position:absolute;left:0;top:4px}
select,input,button,.button{font:inherit;color:var(--text);background:var(--card);border:1px solid var(--line);
  border-radius:6px;padding:4px 9px}
select{max-width:200px}
button,.button{cursor:pointer;white-space:nowrap}
button:hover,.button:hover{border-color:var(--quiet)}
:focus-visible,.button:focus-within{outline:2px solid var(--accent);outline-offset:1px}
.button{position:relative}
.file{position:absolute;left:0;top:0;width:1px;height:1px;padding:0;border:0;opacity:0;pointer-events:none}
.spacer{flex:1}
.search{position:relative;flex:1 1 190px;max-width:320px}
.search input{width:100%}
.results{position:absolute;top:100%;left:0;right:0;background:var(--card);border:1px solid var(--line);border-radius:0 0 6px 6px;
  box-shadow:0 6px 18px rgb(0 0 0/18%);z-index:4;padding:4px;max-height:60vh;overflow:auto}
.results.empty,[hidden]{display:none!important}
.hit{display:block;width:100%;text-align:left;border:0;overflow:hidden;text-overflow:ellipsis;padding:5px 8px;
  font:12px ui-monospace,Menlo,Consolas,monospace;color:var(--quiet)}
.hit b{color:var(--text)}
.hit:hover,.hit:focus{background:var(--mark)}
main{display:grid;grid-template-columns:minmax(0,1fr);gap:12px;padding:12px;max-width:2200px;margin:0 auto}
.sentence{max-width:2200px;min-height:50px;margin:14px auto 0;padding:0 14px;color:var(--quiet)}
.sentence b{display:block;font-size:22px;line-height:1.3;font-weight:600;color:var(--text);font-variant-numeric:tabular-nums}
.figures{display:flex;flex-wrap:wrap;gap:4px 26px;padding:10px 14px 0;max-width:2200px;margin:0 auto}
.figure{min-width:0;cursor:help}
.figure b{font-size:14px;font-weight:600;font-variant-numeric:tabular-nums;white-space:nowrap;margin-right:6px}
.figure b[data-letter]::before{content:attr(data-letter) " ";color:var(--quiet);font-weight:400}
.figure span{color:var(--quiet);font-size:12px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;min-width:0}
.plane{display:block;width:100%;touch-action:pan-y;cursor:crosshair;border-radius:4px}
.map{height:clamp(230px,44vh,620px)}
.chart{height:190px}
.maps{display:grid;gap:10px;grid-template-columns:minmax(0,1fr)}
.map-name{font-size:12px;color:var(--quiet);overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.hint{min-height:1.5em;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;color:var(--quiet);overflow:hidden;
  text-overflow:ellipsis;white-space:nowrap}
.legend{display:flex;flex-wrap:wrap;gap:3px 14px;margin:6px 0 0;padding:0;list-style:none;font-size:12px;color:var(--quiet)}
.legend svg{width:14px;height:14px;vertical-align:-2px;margin-right:5px;border-radius:2px}
.dot{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:7px;vertical-align:-1px}
.curve{width:100%;max-height:320px;display:block;touch-action:none;cursor:ew-resize}
.curve .axis{fill:none;stroke:var(--line)}
.curve .floor{stroke:var(--quiet);stroke-dasharray:2 3}
.curve .front{fill:none;stroke:var(--accent);stroke-width:1.5}
.curve .frontier,.strategies .frontier{fill:none;stroke:var(--text);stroke-opacity:.22;stroke-width:6;stroke-linejoin:round}
.curve .front{stroke-linejoin:round}
.mark{fill:var(--card);stroke:currentColor;stroke-width:1.3}
.mark.best{fill:currentColor}
.c0{color:var(--quiet)}.c1{color:var(--accent)}.c2{color:#d55e00}.c3{color:#009e73}.c4{color:#cc79a7}.c5{color:#b07800}.c6{color:#3b9bd6}
.faint{opacity:.12}
.note{min-height:2.9em}
.strategies{margin:4px 0}
.strategies li{cursor:default}
.curve .here{fill:none;stroke:var(--text);stroke-width:2}
.curve .budget{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:7 4}
.curve .handle{fill:var(--bad)}
.curve .tick{font:10px ui-monospace,Menlo,Consolas,monospace;fill:var(--quiet)}
.slider{display:flex;gap:10px;align-items:center;color:var(--quiet)}
.slider input{flex:1;padding:0;min-width:0}
.budget-text{display:block;font-variant-numeric:tabular-nums}
.quiet{color:var(--quiet);margin:4px 0}
.program{position:relative;height:clamp(200px,36vh,520px);overflow:auto;font:12px/24px ui-monospace,Menlo,Consolas,monospace}
.rows{position:relative;min-width:max-content}
.row{position:absolute;left:0;right:0;height:24px;display:flex;gap:10px;white-space:nowrap;cursor:pointer;padding-right:8px;min-width:100%;width:max-content}
.row:hover{background:var(--mark)}
.row.selected{background:var(--mark);box-shadow:inset 3px 0 var(--accent)}
.row.reads{box-shadow:inset 3px 0 var(--quiet)}
.number{color:var(--quiet);min-width:44px;text-align:right}
.phase{color:var(--quiet);min-width:64px;font-style:italic}
.code{min-width:260px;max-width:88ch;overflow:hidden;text-overflow:ellipsis}
.badges{display:flex;gap:5px;align-items:center}
.badge{line-height:16px;border:1px solid var(--line);border-radius:8px;padding:0 7px;color:var(--quiet);font-size:11px}
.badge.again{background:#f0e442;color:#1b2430;border-color:#b8ae20}
.badge.over{border-color:#009e73;color:inherit}
.story dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:3px 12px;margin:8px 0}
.story dt{color:var(--quiet)}
.story dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
.story ul{margin:6px 0;padding-left:18px;overflow-wrap:anywhere}
.story p{margin:4px 0}
.story summary{cursor:pointer;color:var(--quiet)}
.link{border:0;padding:0;background:none;color:var(--accent);text-align:left;white-space:normal;overflow-wrap:anywhere;margin-right:10px}
.link:hover{text-decoration:underline}
table{border-collapse:collapse;width:100%;font-size:13px}
caption{text-align:left;color:var(--quiet);font-size:12px;padding:4px 0}
th,td{padding:2px 8px 2px 0;text-align:right;font-weight:400;font-variant-numeric:tabular-nums;vertical-align:top}
th:first-child{text-align:left;overflow-wrap:anywhere}
thead th{color:var(--quiet)}
.values{list-style:none;margin:6px 0;padding:0}
.values li{display:grid;grid-template-columns:minmax(0,1fr) max-content;gap:0 10px;padding:4px 0;border-top:1px solid var(--line)}
.values b{font-weight:600;font-variant-numeric:tabular-nums}
.values span{grid-column:1/-1;color:var(--quiet);font-size:12px}
.differences{margin-top:10px}
.differences h3{font-size:13px;margin:0}
.values{max-height:360px;overflow:auto}
.side-key{display:inline-block;width:22px;height:10px;margin-right:6px;vertical-align:-1px}
.side-key.filled{background:linear-gradient(90deg,#0072b2 0 33%,#e69f00 33% 66%,#009e73 66%)}
.side-key.outline{border-top:2px solid var(--text);height:0;vertical-align:4px}
.message{background:var(--card);border:1px solid var(--bad);border-left-width:5px;border-radius:6px;margin:12px 12px 0;
  padding:8px 12px;white-space:pre-wrap;overflow-wrap:anywhere;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace;display:flex;gap:12px;justify-content:space-between;align-items:start}
dialog{background:var(--card);color:var(--text);border:1px solid var(--line);border-radius:10px;max-width:520px;width:calc(100% - 32px)}
dialog table td{text-align:left}
.terms td:first-child{color:var(--quiet);white-space:nowrap}
kbd{border:1px solid var(--line);border-radius:4px;padding:0 5px;font:12px ui-monospace,Menlo,Consolas,monospace}
@media (min-width:760px){.maps.two{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}}
@media (min-width:1000px){
  main{grid-template-columns:minmax(0,1fr) minmax(320px,400px)}
  .left,.right{display:grid;gap:12px;align-content:start;min-width:0}
}
@media (max-width:999px){.left,.right{display:contents}.order-3{order:3}.order-4{order:4}.order-5{order:5}}
@media (max-width:760px){header{position:static}}
@media (max-width:480px){header{gap:6px;padding:8px}header .spacer{display:none}header select{flex:1 1 30%;min-width:0;max-width:none}
  header .search{flex:1 1 45%}header button,header .button{font-size:13px;padding:4px 7px}main{padding:8px;gap:8px}.figures{padding:8px 12px 0;display:grid;gap:2px 12px;grid-template-columns:repeat(2,minmax(0,1fr))}
  .figures.two{grid-template-columns:minmax(0,1fr)}.sentence{padding:0 12px;margin-top:10px;min-height:88px}.sentence b{font-size:18px}.figure b{font-size:13px}.code{min-width:180px}section{padding:8px}h1{max-width:60vw}}
@media (prefers-reduced-motion:no-preference){button,.button{transition:border-color .12s}}
`;
