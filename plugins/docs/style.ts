// The look of the page, in light and in dark.
export const style = `
:root {
  color-scheme: light dark;
  --line: light-dark(#ddd, #3a3a3a); --soft: light-dark(#f6f6f4, #222);
  --dim: light-dark(#666, #999); --accent: light-dark(#0a5fb4, #7ab8f5)
}
* { box-sizing: border-box }
body {
  margin: 0; font: 15px/1.55 system-ui, sans-serif;
  display: grid; grid-template-columns: 17rem minmax(0, 1fr)
}
nav {
  position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); font-size: 13px
}
nav h2 {
  font-size: 12px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim);
  margin: 1.2rem 0 .3rem
}
nav a {
  display: block; padding: .12rem 0; color: inherit; text-decoration: none;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis
}
nav a:hover { color: var(--accent) }
details { margin-top: .8rem; font-size: 13.5px }
main { max-width: 56rem; padding: 2rem 2.5rem 6rem }
section { border-top: 1px solid var(--line); padding: 1.6rem 0 }
h1 { margin: 0 }
h3 { margin: 0 0 .4rem; font-size: 1.05rem }
h4 { margin: 1rem 0 .3rem; font-size: 13px; color: var(--dim) }
code, .path { font: 13px/1.5 ui-monospace, monospace }
.path {
  display: block; background: var(--soft); border-radius: 6px; padding: .45rem .7rem;
  margin: .5rem 0; overflow-x: auto
}
.verb { font-weight: 700; color: var(--accent); margin-right: .6rem }
.open { float: right; color: var(--dim) }
table { width: 100%; border-collapse: collapse; font-size: 13.5px }
td {
  padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere
}
pre {
  background: var(--soft); border-radius: 6px; padding: .6rem .8rem; overflow-x: auto;
  font: 12.5px/1.5 ui-monospace, monospace
}
td:first-child { width: 14rem }
td:nth-child(2) { width: 13rem; color: var(--dim) }
small { color: var(--dim) }
@media (max-width: 50rem) {
  body { display: block }
  nav { position: static; height: auto; border: 0 }
  main { padding: 1rem }
}`
