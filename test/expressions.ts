// Every regular expression that the sources hold, found by a small scanner of TypeScript: it knows
// comments, texts and templates, and where a stroke begins an expression.
export type Expression = { readonly line: number; readonly source: string; readonly flags: string }

/** After these a stroke divides; after anything else it begins an expression. */
const endsValue = /[\w$)\]}]$/
const beforeExpression = /\b(?:return|typeof|case|in|of|delete|void|throw|new|await|yield|else|do)$/

function endOfExpression(text: string, from: number): number {
  let inClass = false
  for (let i = from + 1; i < text.length && text[i] !== '\n'; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '[') inClass = true
    else if (text[i] === ']') inClass = false
    else if (text[i] === '/' && !inClass) return i
  }
  return -1
}
function endOfText(text: string, from: number): number {
  let i = from + 1
  while (i < text.length && text[i] !== text[from]) i += text[i] === '\\' ? 2 : 1
  return i
}

export function expressionsIn(text: string): Expression[] {
  const found: Expression[] = []
  /** Open braces of each template part that we are in. */
  const braces: number[] = []
  let last = ''
  let line = 1
  const skipTo = (i: number, end: number) => {
    for (let at = i; at < end; at++) if (text[at] === '\n') line++
    return end
  }
  /** The text of a template up to its end, or to where code begins in it. */
  const template = (from: number) => {
    let i = from
    while (i < text.length && text[i] !== '`' && !(text[i] === '$' && text[i + 1] === '{'))
      i += text[i] === '\\' ? 2 : 1
    if (text[i] === '$') braces.push(0)
    last = text[i] === '$' ? '{' : ')'
    return skipTo(from, text[i] === '$' ? i + 2 : i + 1)
  }
  for (let i = 0; i < text.length; ) {
    const sign = text[i]!
    const next = text[i + 1]
    if (sign === '\n') line++
    if (/\s/.test(sign)) i++
    else if (sign === '/' && next === '/')
      i = text.indexOf('\n', i) < 0 ? text.length : text.indexOf('\n', i)
    else if (sign === '/' && next === '*') i = skipTo(i, text.indexOf('*/', i) + 2)
    else if (sign === "'" || sign === '"') {
      i = endOfText(text, i) + 1
      last = ')'
    } else if (sign === '`') i = template(i + 1)
    else if (sign === '}' && braces.at(-1) === 0) {
      braces.pop()
      i = template(i + 1)
    } else if (
      sign === '/' &&
      (!endsValue.test(last) || beforeExpression.test(last)) &&
      endOfExpression(text, i) > 0
    ) {
      const end = endOfExpression(text, i)
      const flags = /^[a-z]*/.exec(text.slice(end + 1, end + 9))![0]
      found.push({ line, source: text.slice(i + 1, end), flags })
      i = end + 1 + flags.length
      last = ')'
    } else {
      if (braces.length > 0 && (sign === '{' || sign === '}'))
        braces[braces.length - 1]! += sign === '{' ? 1 : -1
      const word = /^[\w$]{1,200}/.exec(text.slice(i, i + 200))?.[0] ?? sign
      last = word
      i += word.length
    }
  }
  return found
}
