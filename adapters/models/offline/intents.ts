// What a message asks of the offline model beyond an answer: a tool by name, a plan, a summary.
import type { Message, ToolSpec } from '#ports/models.ts'
import type { Json } from '#ports/token.ts'
import { sentencesOf } from './words.ts'

const verbs =
  '(?:use|using|call|run|invoke|' + 'utilise[rz]?|appelle[rz]?|appeler|lance[rz]?|exécute[rz]?)'
const stepwisePattern = /\b(?:numbered|step[- ]by[- ]step)\s+(?:\w+\s+)?(?:plan|list of steps)\b/iu
const numberedPattern = /\bplan\b[^.\n]{0,40}\bnumbered\b|\bplan\s+numéroté|\bétapes\s+numérotées/iu
const namesPlan = (text: string) => stepwisePattern.test(text) || numberedPattern.test(text)
const summaryPattern =
  /\b(?:summari[sz]e|summary|sum up|tl;?dr|key points|overview|résume[rz]?|résumé|synthèse)\b/iu
const gistPattern =
  /\bpoints clés\b|\b(?:what(?:'s| is| does)|de quoi)\b[^?]{0,40}\b(?:about|say|parle)/iu
const stepsPattern =
  /(?:^|\s)\d{1,3}[.)]\s|[;•]|,?\s(?:and then|then|after that|puis|ensuite|et ensuite)\s/iu
const stepsMax = 12
const stepMax = 200

export type ToolAsk = { readonly name: string; readonly arguments: Json | undefined }

/** Where the object that begins at `start` ends, its last brace included; 0 when it does not. */
function endOfObject(text: string, start: number): number {
  let depth = 0
  let quoted = false
  for (let at = start; at < text.length; at++) {
    const sign = text[at]
    if (quoted) {
      if (sign === '\\') at++
      else if (sign === '"') quoted = false
    } else if (sign === '"') quoted = true
    else if (sign === '{') depth++
    else if (sign === '}' && --depth === 0) return at + 1
  }
  return 0
}

/**
 * The first object in a text; undefined when there is none, `value: undefined` when it is not JSON.
 */
function objectIn(text: string): { readonly value: Json | undefined } | undefined {
  const start = text.indexOf('{')
  if (start < 0) return undefined
  try {
    return { value: JSON.parse(text.slice(start, endOfObject(text, start))) as Json }
  } catch {
    return { value: undefined }
  }
}

/** The name of a tool's only required parameter, if that parameter is a text. */
function soleTextOf(parameters: Json): string | undefined {
  if (typeof parameters !== 'object' || parameters === null || Array.isArray(parameters))
    return undefined
  const { required, properties } = parameters
  if (!Array.isArray(required) || required.length !== 1 || typeof required[0] !== 'string')
    return undefined
  const [name] = required
  const property =
    typeof properties === 'object' && properties !== null && !Array.isArray(properties)
      ? properties[name]
      : undefined
  return typeof property === 'object' &&
    property !== null &&
    !Array.isArray(property) &&
    property.type === 'string'
    ? name
    : undefined
}

/**
 * The offered tool that the user names after a verb of calling, with its JSON; `arguments:
 * undefined` when the JSON is broken.
 */
export function toolAsked(message: string, tools: readonly ToolSpec[]): ToolAsk | undefined {
  for (const { name, parameters } of tools.toSorted((a, b) => b.name.length - a.name.length)) {
    const quoted = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    const match = new RegExp(
      String.raw`(?<!\p{L})${verbs}\s[^.\n{]{0,40}?(?<![\p{L}\p{N}_])${quoted}(?![\p{L}\p{N}_])`,
      'iu',
    ).exec(message)
    if (match === null) continue
    const rest = message.slice(match.index + match[0].length)
    const json = objectIn(rest)
    if (json !== undefined) return { name, arguments: json.value }
    const wants = soleTextOf(parameters)
    const text = rest
      .replace(/^[\s`"'»:,.]+/u, '')
      .replace(/^(?:with|for|about|on|to|avec|pour|sur)\s+/iu, '')
      .trim()
    return { name, arguments: wants !== undefined && text !== '' ? { [wants]: text } : {} }
  }
  return undefined
}

export const asksForSummary = (message: string): boolean =>
  summaryPattern.test(message) || gistPattern.test(message)

/** The steps of the plan that the user's or the system's words ask for. */
export function planAsked(
  messages: readonly Message[],
  message: string,
): readonly string[] | undefined {
  const asked =
    messages.some(({ role, content }) => role === 'system' && namesPlan(content)) ||
    namesPlan(message)
  if (!asked) return undefined
  const steps = sentencesOf(message)
    .filter(sentence => !namesPlan(sentence))
    .flatMap(sentence => sentence.split(stepsPattern))
  return steps
    .map(step => step.trim().replace(/[.,;:]{1,20}$/, ''))
    .filter(step => /\p{L}/u.test(step))
    .slice(0, stepsMax)
    .map(step => (step[0]!.toUpperCase() + step.slice(1)).slice(0, stepMax))
}
