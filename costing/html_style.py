"""The look of the HTML report: one style sheet, light and dark, on screen and on paper."""

STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fdfcfa; --ink: #1d1f23; --soft: #5f6672; --rule: #e3e0d9; --card: #ffffff;
  --tenant: #2f6f8f; --underfill: #c98a3d; --idle: #b9bec6; --overhead: #8a6d9b; --unobserved: #cf5b4c;
  --correction: #4f8a5b; --good: #3c7a4a; --bad: #b3372a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16181c; --ink: #e8e6e1; --soft: #9aa1ac; --rule: #2e3138; --card: #1d2025;
    --tenant: #5aa6c9; --underfill: #d9a35c; --idle: #5a616c; --overhead: #a98bbb; --unobserved: #e07a6c;
    --correction: #75b183; --good: #7dbd8c; --bad: #ee8a7d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 3rem 2rem 4rem; max-width: 76rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 "Inter", "Segoe UI", system-ui, -apple-system, sans-serif; font-variant-numeric: tabular-nums;
}
header { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: end; gap: 1rem 3rem; }
h1 { margin: 0; font-size: 1.05rem; font-weight: 600; letter-spacing: .02em; }
h2 { margin: 3rem 0 .9rem; font-size: 1.05rem; font-weight: 600; }
.period { margin: .1rem 0 0; color: var(--soft); }
.sum { font-size: 2.9rem; line-height: 1; font-weight: 650; letter-spacing: -.02em; }
.sum small { font-size: 1.1rem; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.verdict { margin: .4rem 0 0; text-align: right; color: var(--good); }
.verdict.bad { color: var(--bad); font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .8rem; margin: 1rem 0 0; }
.card { padding: .9rem 1rem; background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; }
.card b { display: block; font-size: 1.3rem; font-weight: 600; }
.card span { color: var(--soft); font-size: .86rem; }
.dot { display: inline-block; width: .65em; height: .65em; margin-right: .45em; border-radius: 2px; }
.strip { display: flex; height: 1.5rem; margin-top: 2rem; border-radius: .35rem; overflow: hidden; gap: 1px; }
.strip i { display: block; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--soft); font-size: 11px; font-family: inherit; }
svg line { stroke: var(--rule); }
.tenant { fill: var(--tenant); background: var(--tenant); }
.underfill { fill: var(--underfill); background: var(--underfill); }
.idle { fill: var(--idle); background: var(--idle); }
.overhead { fill: var(--overhead); background: var(--overhead); }
.unobserved { fill: var(--unobserved); background: var(--unobserved); }
.correction { fill: var(--correction); background: var(--correction); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .5rem 0 0; color: var(--soft); font-size: .86rem; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .94em; }
th, td { padding: .38rem .5rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th { font-weight: 500; color: var(--soft); font-size: .87em; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { padding-left: 0; }
th:last-child, td:last-child { padding-right: 0; }
.name { text-align: left; max-width: 18rem; overflow: hidden; text-overflow: ellipsis; }
.bar { width: 9rem; min-width: 6rem; }
.bar div { height: .6rem; min-width: 1px; border-radius: 2px; }
tr.other td { color: var(--soft); }
tr.other td.money { color: var(--ink); }
tr.total td { border-top: 2px solid var(--ink); border-bottom: 0; font-weight: 650; }
.over { color: var(--bad); font-weight: 600; }
.problems { padding: .7rem 1rem; border-left: 3px solid var(--bad); color: var(--bad); }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); }
footer { color: var(--soft); font-size: .86rem; }
footer p { margin: .25rem 0; }
@page { margin: 14mm; }
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --ink: #000; --soft: #555; --rule: #ccc; --card: #fff; --tenant: #2f6f8f; --idle: #b9bec6;
  }
  body { padding: 0; max-width: none; font-size: 11px; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { margin-top: 1.6rem; break-after: avoid; }
  tr, .card, svg { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
}
"""
