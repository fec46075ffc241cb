"""The page's styles. Colors: blue no harm, orange harm, grey proves nothing; red is kept for what was not expected."""

BASE = """
:root{--bg:#fff;--ink:#17191c;--mu:#5a6069;--ln:#e4e5e8;--ln2:#c9ccd1;--fill:#f4f5f6;--o:#3b7fb3;--d:#c97700;
--al:#b3153a;--alb:#fdf1f3;--af:#b3153a;--on:#fff;--gr:#00745a;--nn:#6a7079;--st:#dfe3e8;--fo:#0060c7;--sh:#17191c38}
@media(prefers-color-scheme:dark){:root{--bg:#101214;--ink:#e7e9ec;--mu:#9aa1aa;--ln:#24282d;--ln2:#3b4148;
--fill:#191c20;--o:#56a9de;--d:#e69f00;--al:#ff7088;--alb:#25141a;--af:#cf2a4f;--gr:#3cc79c;--nn:#8d949d;
--st:#2c3238;--fo:#6db3ff;--sh:#e7e9ec38}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-padding-top:16px}
body{margin:0;background:var(--bg);color:var(--ink);overflow-wrap:anywhere;font-variant-numeric:tabular-nums;
font:14px/1.5 system-ui,-apple-system,"Segoe UI",Inter,Roboto,"Noto Sans",sans-serif}
main,header,footer{max-width:1128px;margin:0 auto;padding:0 24px}
footer{padding-bottom:56px}
code{font:12.5px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
h1,h2,h3,h4,p,ul,ol,dl,dd,figure{margin:0;padding:0}
ul,ol{list-style:none}
h2{font-size:18px;line-height:1.3;font-weight:600;letter-spacing:-.01em}
h3,h4{font-size:14px;font-weight:600}
a{color:inherit;text-decoration-color:var(--ln2);text-underline-offset:3px}
a:hover{text-decoration-color:currentColor}
:focus-visible{outline:2px solid var(--fo);outline-offset:2px;border-radius:2px}
.mu,small{color:var(--mu)}
.sm{font-size:12.5px;margin-top:6px}
.al{color:var(--al)}
.sr{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
.skip{position:absolute;left:-999px;top:0;background:var(--bg);padding:8px 12px}
.skip:focus{left:8px}
.defs{position:absolute}
.o{fill:var(--o)}.d{fill:var(--d)}.a{fill:var(--af)}.nb{fill:var(--nn)}.np{fill:var(--st)}
.k{fill:none;stroke:var(--nn);stroke-width:1.3}
circle.n{fill:var(--nn)}
path.n{fill:none;stroke:var(--nn);stroke-width:1.5;stroke-linecap:round}
.l{fill:none;stroke:var(--d);stroke-width:1.8}.f{fill:var(--d)}.h{stroke:var(--o);stroke-width:2.4}
.ax{stroke:var(--ln2);stroke-width:1;fill:none}
svg text{font-size:12px;fill:var(--ink)}
svg text.mu,svg text.lb{fill:var(--mu)}
svg .b{font-weight:600}
.g{width:16px;height:16px;flex:none;vertical-align:-3px}
.eq,.ne,.uk{font-style:normal;display:inline-block;flex:none;width:16px;height:16px;line-height:16px;
text-align:center;font-size:13px}
.eq,.uk{color:var(--mu)}
.uk{border:1px dashed var(--nn);border-radius:3px;line-height:14px}
.ne{background:var(--af);color:var(--on);border-radius:3px;font-weight:700}
section{padding-top:56px}
.sh{display:flex;gap:2px 16px;align-items:baseline;flex-wrap:wrap;margin-bottom:16px}
.sh p{color:var(--mu);font-size:13px}
details{font-size:13px}
summary{cursor:pointer;width:fit-content}
summary:hover{text-decoration:underline;text-decoration-color:var(--ln2);text-underline-offset:3px}
.sc{overflow-x:auto;position:relative;scrollbar-width:thin;background:
linear-gradient(90deg,var(--bg) 40%,transparent) 0/44px 100% no-repeat local,
linear-gradient(-90deg,var(--bg) 40%,transparent) 100%/44px 100% no-repeat local,
linear-gradient(90deg,var(--sh),transparent) 0/16px 100% no-repeat scroll,
linear-gradient(-90deg,var(--sh),transparent) 100%/16px 100% no-repeat scroll}
.sw{color:var(--mu);font-size:12px;text-align:right;margin-top:4px}
"""

HEAD = """
.top{display:flex;gap:8px 20px;justify-content:space-between;flex-wrap:wrap;padding-top:20px;font-size:13px;
color:var(--mu)}
.top nav{display:flex;gap:4px 18px;flex-wrap:wrap}
.top a{text-decoration:none}.top a:hover{color:var(--ink)}
.hl{display:flex;align-items:center;gap:14px;margin:36px 0 12px;flex-wrap:wrap}
h1{font-size:30px;line-height:1.15;font-weight:650;letter-spacing:-.02em}
.res{display:inline-flex;align-items:center;gap:7px;font-size:16px;font-weight:650;line-height:1;
padding:7px 12px 7px 10px;border-radius:5px;border:1.5px solid currentColor}
.res svg{width:14px;height:14px;fill:none;stroke:currentColor;stroke-width:2.2;stroke-linecap:round;
stroke-linejoin:round}
.res.fail{background:var(--af);border-color:var(--af);color:var(--on)}
.res.pass{color:var(--gr)}.res.inc{color:var(--mu);border-style:dashed}
.lead{font-size:20px;line-height:1.42;letter-spacing:-.008em;max-width:46em;text-wrap:pretty}
.why{margin-top:10px;font-size:14px;color:var(--mu)}
.why li,.rs li,.fd li{padding-left:14px;position:relative}
.why li:before,.rs li:before,.fd li:before{content:"–";position:absolute;left:0}
.bar{display:block;width:100%;height:8px;margin:24px 0 10px}
.sep{stroke:var(--bg);stroke-width:2}
.key{display:flex;flex-wrap:wrap;gap:4px 22px;font-size:13px}
.key li{display:flex;align-items:center;gap:6px}
.facts{display:grid;grid-template-columns:repeat(5,auto);gap:14px 28px;justify-content:space-between;
margin-top:28px;padding-top:16px;border-top:1px solid var(--ln)}
.facts>*,.wide>*,.cols>*{min-width:0}
dt{font-size:12px;color:var(--mu)}
.wide{display:grid;grid-template-columns:1fr 1fr;gap:14px 28px;padding:14px 0 16px;border-bottom:1px solid var(--ln)}
.cmd{display:flex;align-items:center;background:var(--fill);border-radius:5px;margin-top:4px;min-width:0}
.cmd code{flex:1;min-width:0;padding:7px 10px;user-select:all}
.cmd button{font:inherit;font-size:12px;line-height:1;border:0;border-left:1px solid var(--ln);background:none;
color:var(--mu);padding:10px 12px;cursor:pointer}
.cmd button:hover{color:var(--ink)}
"""

MATRIX = """
.lg{display:flex;flex-wrap:wrap;gap:6px 22px;font-size:13px;color:var(--mu);margin-bottom:12px;align-items:center}
.lg li{display:flex;align-items:center;gap:6px}
.all summary,.all p{color:var(--mu)}.all p{padding-top:8px}
.vg{display:grid;grid-template-columns:repeat(auto-fill,minmax(290px,1fr));gap:6px 24px;padding:10px 0 4px}
.vg li{display:flex;gap:8px;align-items:center}
.mx{width:100%;border-collapse:collapse;margin-top:14px;table-layout:fixed}
.mx.wd{table-layout:auto;width:auto;min-width:100%}
.wd th:first-child:not([colspan]){position:sticky;left:0;z-index:1;background:var(--bg);padding-right:12px}
.mx th{text-align:left;font-weight:400;vertical-align:bottom}
.mx th,.mx td{overflow-wrap:break-word}
.mx thead th{padding:0 12px 8px 0;font-size:13px;border-bottom:1px solid var(--ln2);line-height:1.35}
.mx thead th:first-child,.mx tfoot th{color:var(--mu)}
.mx thead th>span,.mx thead small{display:block}
.mx thead small{font-size:12px}
.wd thead th>*{max-width:150px}
.nr thead th>*{max-width:112px}
.mx:not(.wd) th:first-child{width:118px}.mx:not(.wd) th.ct{width:112px}
.m{display:block;width:112px;height:14px;margin-bottom:5px}
.nr thead th:not(:first-child):not(.ct){vertical-align:top}
.nr .m{width:100%;min-width:60px}
.m .st,.tl .st{fill:var(--st)}
.rc{stroke:var(--mu);stroke-width:2}
.kx{stroke:var(--ink);stroke-width:2;stroke-linecap:round;fill:none}
.gr th{padding:18px 0 5px;font-size:14px}
.gr b{font-weight:600}
.gr div{display:flex;justify-content:space-between;gap:0 14px;align-items:baseline}
.wd .gr div{display:inline-flex;position:sticky;left:0}
.sum{font-size:13px;color:var(--mu)}
.mx tbody tr:not(.gr) th,.mx tbody td{border-top:1px solid var(--ln);height:35px;padding:0;vertical-align:middle;
font-size:13px}
.mx tbody tr:not(.gr) th{padding-right:12px;overflow-wrap:break-word}
.mx td>div{display:flex;flex-wrap:wrap;align-items:center;gap:2px 8px;padding:4px 8px 4px 0}
.ds{display:flex;align-items:center;gap:8px}
.mx td a{text-decoration:none;display:flex}
.s{flex:none;display:block}
.s .few{font-size:9px;text-anchor:middle}
.t{display:flex;flex-wrap:wrap;gap:0 10px;line-height:1.25;flex:1 1 min-content}
.bl .ds{display:contents}
.bl td>div{gap:2px 4px}
.bl .ds>:first-child{flex:1 0 100%}
.mx td.bad>div{background:var(--alb);box-shadow:inset 0 0 0 1.5px var(--al);border-radius:4px;
margin:2px 14px 2px -7px;padding:3px 8px 3px 7px}
.nr td.bad>div{margin-right:6px}
.mx tfoot th,.mx tfoot td{border-top:1px solid var(--ln2);padding:8px 0;font-size:13px}
.mx tfoot span{color:var(--mu)}
"""

TRIAL = """
.one{padding-top:8px}.one+.one{margin-top:36px;padding-top:24px;border-top:1px solid var(--ln)}
.one h3 .mu{font-weight:400;margin-left:10px}
.tv{display:flex;flex-wrap:wrap;gap:4px 16px;align-items:center;margin:8px 0 0;font-size:13px}
.tv>span{display:inline-flex;gap:6px;align-items:center}
.fd,.rs{font-size:13px;margin-top:6px}
.tg{display:grid;grid-template-columns:var(--tg);margin-top:18px}
.tl{display:block;overflow:visible}
.tl .lb{paint-order:stroke;stroke:var(--bg);stroke-width:5px;stroke-linejoin:round}
.idle{stroke:var(--ln2);stroke-dasharray:2 4}
.live{stroke:var(--nn);stroke-width:1.5}
.pt{stroke:var(--nn)}
.kl{stroke:var(--ink);stroke-width:1.5}
.kx2{stroke:var(--ink);stroke-width:3;stroke-linecap:round}
.cn{stroke:var(--nn);stroke-dasharray:2 2}
.rq{fill:var(--nn)}.rp{fill:var(--bg);stroke:var(--nn);stroke-width:1.6}
.end{fill:var(--ink)}
.ph{display:none}
.gap{margin:14px 10px 24px;border:dashed var(--ln2);border-width:0 1px;font-size:12px;line-height:1.35;
color:var(--mu);display:flex;flex-direction:column;justify-content:center;gap:8px;text-align:center}
.gap b{color:var(--ink);font-weight:600;display:block}
.cols{display:grid;grid-template-columns:1fr 1fr;gap:28px 40px;margin-top:20px}
.cols h4{margin-top:18px}.cols>div>h4:first-child{margin-top:0}
.cols details{margin-top:10px}.cols summary{color:var(--mu)}
.ev{margin-top:8px;font-size:13px}
.ev li{display:grid;grid-template-columns:72px 1fr;gap:0 12px;padding:6px 0;border-top:1px solid var(--ln)}
.ev li>span{color:var(--mu);text-align:right}
.lt{border-collapse:collapse;width:100%;font-size:12.5px;margin-top:8px}
.lt th{font-weight:400;color:var(--mu);font-size:12px;text-align:left;padding:0 12px 5px 0;white-space:nowrap}
.lt td{border-top:1px solid var(--ln);padding:6px 12px 6px 0;white-space:nowrap}
.lt .r{text-align:right}
.lt td:last-child,.lt th:last-child{padding-right:0}
.ces{display:grid;grid-template-columns:repeat(auto-fill,minmax(340px,1fr));gap:0 24px}
.ces>*{min-width:0}
.ce[open]{grid-column:1/-1}
.ce{border-top:1px solid var(--ln);padding:7px 0}
.ce>summary>b{font-weight:600}
.in{padding:6px 0 14px 14px}
.tr,.te{padding:3px 0}
.te .g,.tr>summary .g{margin-right:6px}
.tr>.in{border-left:2px solid var(--ln);padding:2px 0 18px 16px;margin:6px 0 6px 4px}
:target{background:var(--fill)}
details:target>summary,article:target h3{background:var(--fill);box-shadow:0 0 0 4px var(--fill)}
details:target,article:target,section:target{background:none}
"""

REST = """
.cg{display:grid;grid-template-columns:1fr 1fr;gap:32px 56px}
figcaption{margin-bottom:8px}
figcaption h3{display:inline}
figcaption .mu{font-size:13px;margin-left:4px}
.rw{display:grid;grid-template-columns:136px 1fr 48px;gap:12px;align-items:center;min-height:24px;font-size:13px}
.rw svg{width:100%;height:18px;overflow:visible}
.rw b{text-align:right;font-weight:500}
.wh{stroke:var(--nn);stroke-width:1.5}.bx{fill:var(--nn)}.md{stroke:var(--ink);stroke-width:2.5}
.dl{stroke:var(--ln2)}.ex{stroke-width:1.5}
.ex.d{stroke:var(--d)}.ex.o{stroke:var(--o)}
.axr svg{margin-top:4px}
.rw text{font-size:11px}
.fh{font-size:13px;font-weight:400;color:var(--mu);margin:22px 0 6px}
.fl>li{display:grid;grid-template-columns:16px 1fr 232px;gap:0 12px;padding:12px 0;border-top:1px solid var(--ln)}
.fl>li>i,.fl>li>.g{margin-top:3px}
.fl p{max-width:62em;text-wrap:pretty}
.wb{font-size:13px;margin-top:2px}
.rt{font-size:13px}
.ci{display:block;width:100%;height:16px;overflow:visible;margin:1px 0}
.gl{stroke:var(--ln2)}
.iv{stroke-width:3}.iv.o{stroke:var(--o)}.iv.d{stroke:var(--d)}
.fl li.bad{border-top-color:var(--al)}.fl li.bad h4{color:var(--al)}
.pv{display:grid;grid-template-columns:repeat(3,1fr);gap:14px 40px}
.pv dd{font-size:13px}
"""

NARROW = """
@media screen and (max-width:760px){
main,header,footer{padding:0 16px}
.hl{margin-top:26px}h1{font-size:26px}.lead{font-size:18px}
.facts{grid-template-columns:1fr 1fr;gap:12px 20px}.wide{grid-template-columns:1fr}
.key{gap:4px 18px}
section{padding-top:44px}
.mx:not(.wd) th:first-child{width:24%}.mx:not(.wd) th.ct{width:15%}
.mx:not(.wd) .m,.mx:not(.wd) thead small,.mx:not(.wd) thead .pre,.mx:not(.wd) .t{display:none}
.mx tfoot span{display:block}
.mx thead th{padding-right:0;font-size:12px}
.mx.wd thead th{padding-right:12px}
.mx tbody tr:not(.gr) th{font-size:11.5px;padding-right:4px}
.mx:not(.wd) tbody th{white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.mx .gr th{white-space:normal!important}
.mx .gr div{display:block}
.mx td>div,.ds{gap:2px 4px}.mx td>div{padding:0}
.mx td a{padding:6px 0}
.mx:not(.wd) .s{max-width:44px;height:auto}.mx:not(.wd) .ct .s{max-width:36px}
.mx td.bad>div{margin:2px 4px 2px -3px;padding:3px 0 3px 3px;gap:3px}
.mx .eq,.mx .ne,.mx .uk{width:14px;height:14px;line-height:14px;font-size:11px}
.sum{display:block;font-size:12px}.gr th{padding-top:16px}
.tg{grid-template-columns:1fr}
.gap{display:block;text-align:left;margin:10px 0 14px;padding:8px 0;border-width:1px 0}
.gap b{display:inline}
.gap span+span{margin-left:8px}
.ph{display:inline}.dk{display:none}
.cols,.cg,.ces{grid-template-columns:1fr}.pv{grid-template-columns:1fr 1fr;gap:12px 20px}
.ev li{grid-template-columns:58px 1fr}
.rw{grid-template-columns:118px 1fr 42px;gap:8px;font-size:12.5px}
.tl text{font-size:11px}
.fl>li{grid-template-columns:16px 1fr}
.rt{grid-column:2;margin-top:8px;max-width:260px}
.in{padding-left:6px}.tr>.in{padding-left:10px}
}
"""

PRINT = """
@media print{:root{--bg:#fff;--ink:#000;--mu:#444;--ln:#ccc;--ln2:#999;--fill:#f4f5f6;--o:#3b7fb3;--d:#c97700;
--al:#b3153a;--alb:#fff;--af:#b3153a;--on:#fff;--gr:#00745a;--nn:#555;--st:#ddd}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
body{zoom:.64}
.top{padding:0}.hl{margin-top:16px}
nav,button,.skip,.all,.sw{display:none!important}
.sc{overflow:visible;background:none}
.mx.wd{zoom:min(1,calc(1060/var(--w)))}
.wd th:first-child:not([colspan]),.wd .gr div{position:static}
section{padding-top:30px}
tfoot{display:table-row-group}
.tg,.fl>li,figure,.mx tr,.ev li,.one{break-inside:avoid}
#trials:not(:has(details[open])),.ce:not([open]){display:none}
h2,h3,h4,.sh,.tv,.fh,thead,.gr{break-after:avoid}
@page{margin:14mm}}
"""

STYLES = BASE + HEAD + MATRIX + TRIAL + REST + NARROW + PRINT
