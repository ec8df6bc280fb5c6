// The embedded default: a deterministic program that answers by quoting its input. It has no
// weights and uses no network.
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelDelta, ModelProvider, ModelRequest } from '#ports/models.ts'
import { closedFault, closable } from '../_shared/closable.ts'
import {
  inputTokensOf,
  lastUserText,
  modelOf,
  tokensOf,
  toolResultsSince,
} from './lib/model-calls.ts'
import { asksForSummary, planAsked, toolAsked, type ToolAsk } from './offline/intents.ts'
import { phrases } from './offline/templates.ts'
import { materialMax, quotesAbout, type Quote, type Source } from './offline/rank.ts'
import { languageOf, sentencesOf } from './offline/words.ts'
import { wholeOption } from '../_shared/options.ts'

const serviceName = 'The offline model'
const intervalMsUsual = 15
const wordsPerBatch = 3
const answerTokensMax = 1000
const quotesMax = 5
const toolResultMax = 8000
/**
 * Characters at each end of a long message that are searched for its question. The whole message is
 * material.
 */
const questionMax = 4096
/** Characters of a message that are searched for a tool's name and its arguments. */
const toolAskMax = 65_536
/** A message with more sentences than this brings its own material. */
const questionSentencesMax = 3

const models: readonly Model[] = [
  {
    key: 'offline',
    name: 'Offline',
    provider: 'built in',
    isDefault: true,
    description:
      'Not a language model: a small deterministic program that quotes the passages of ' +
      'attachments and of the conversation that best match the question, writes numbered ' +
      'plans and calls tools by name. It serves until the operator connects a language ' +
      'model by the setting MODELS_URL.',
    contextTokens: tokensOf(materialMax),
    outputTokensMax: answerTokensMax,
    price: { inputPer1k: 0, outputPer1k: 1, minimum: 1 },
    supports: { tools: true, reasoning: false, prefill: true, resume: false },
  },
]

type Words = (typeof phrases)[keyof typeof phrases]
type Answer = { readonly text: string; readonly tool?: ToolAsk }

const questionPartOf = (message: string): string =>
  message.length > 2 * questionMax
    ? `${message.slice(0, questionMax)}\n${message.slice(-questionMax)}`
    : message

/**
 * The material for quotes: files first, then the message's own text, then earlier messages of the
 * user, the newest first.
 */
function materialOf(
  { messages, attachments = [] }: ModelRequest,
  message: string,
): { question: string; sources: Source[] } {
  const words = phrases[languageOf(message)].earlier
  const sources: Source[] = attachments
    .filter(({ text }) => text.trim() !== '')
    .map(({ name, text }) => ({ name, text }))
  const long = message.length > 2 * questionMax
  const sentences = sentencesOf(questionPartOf(message))
  let question = message
  if (long || sentences.length > questionSentencesMax) {
    // The question is the sentence with a question mark, or else the first sentence.
    const asking = Math.max(
      0,
      sentences.findLastIndex(sentence => /[?？؟]["'»”)\]]?$/.test(sentence)),
    )
    question = sentences[asking] ?? ''
    sources.push({
      name: words.message,
      text: long ? message : sentences.filter((_, at) => at !== asking).join('\n'),
    })
  }
  const last = messages.findLastIndex(({ role }) => role === 'user')
  for (const { role, content } of messages.slice(0, Math.max(0, last)).toReversed()) {
    if (role === 'user') sources.push({ name: words.user, text: content })
  }
  return { question, sources }
}

function quoted(quotes: readonly Quote[], introduction: string): string {
  return [introduction, ...quotes.map(({ source, text }) => `> ${text}\n— ${source}`)].join('\n\n')
}

function toolResultsAnswer(
  messages: ModelRequest['messages'],
  results: readonly string[],
  words: Words,
): Answer {
  const calls = messages.findLast(
    one => one.role === 'assistant' && (one.toolCalls?.length ?? 0) > 0,
  )
  const name = calls?.role === 'assistant' ? (calls.toolCalls?.[0]?.name ?? '') : ''
  return { text: `${words.toolSaid(name)}\n\n${results.join('\n\n').slice(0, toolResultMax)}` }
}

function planAnswer(steps: readonly string[], message: string, words: Words): Answer {
  const plan =
    steps.length > 1
      ? steps
      : [words.planLooks(steps[0] ?? message.slice(0, 200)), words.planAnswers]
  return { text: plan.map((step, at) => `${at + 1}. ${step}`).join('\n') }
}

/** Answers with quotes from the material, or says that nothing in it fits. */
async function materialAnswer(
  request: ModelRequest,
  message: string,
  words: Words,
  turn: () => Promise<void>,
): Promise<Answer> {
  const { tools = [], attachments = [] } = request
  const { question, sources } = materialOf(request, message)
  const summary = asksForSummary(question) && (attachments.length > 0 || sources.length > 0)
  const quotes = await quotesAbout(summary ? undefined : question, {
    sources,
    most: quotesMax,
    turn,
  })
  if (quotes.length > 0) return { text: quoted(quotes, summary ? words.summary : words.found) }
  if (attachments.length > 0) {
    const names = [...new Set(sources.map(({ name }) => name))].slice(0, 5).join(', ')
    return { text: words.nothing(names || attachments[0]!.name) }
  }
  const toolNames = tools.slice(0, 20).map(({ name }) => name)
  return { text: words.alone(toolNames.length > 0 ? ` (${toolNames.join(', ')})` : '') }
}

/**
 * Decides the whole answer before the first word is sent. The same request gives the same text, so
 * that an answer can be continued.
 */
async function answerTo(request: ModelRequest, turn: () => Promise<void>): Promise<Answer> {
  const { messages, tools = [] } = request
  const message = lastUserText(messages)
  const words = phrases[languageOf(message)]
  const results = toolResultsSince(messages)
  if (results.length > 0) return toolResultsAnswer(messages, results, words)
  const tool = toolAsked(message.slice(0, toolAskMax), tools)
  if (tool !== undefined)
    return tool.arguments === undefined
      ? { text: words.badArguments(tool.name) }
      : { text: '', tool }
  const steps = planAsked(messages, questionPartOf(message))
  if (steps !== undefined) return planAnswer(steps, message, words)
  return materialAnswer(request, message, words, turn)
}

/**
 * Splits a text into words, each with the space before it. One pattern for both would start again
 * at each of many spaces.
 */
function wordsOf(text: string): string[] {
  const words: string[] = []
  let space = ''
  for (const [part] of text.matchAll(/\s+|\S+/g)) {
    if (part.trim() === '') space = part
    else {
      words.push(space + part)
      space = ''
    }
  }
  return words
}

export function offline({
  clock,
  intervalMs = intervalMsUsual,
}: {
  clock: Clock
  intervalMs?: number
}): ModelProvider {
  const { check, shut } = closable(serviceName)
  const closing = new AbortController()

  async function* written(
    text: string,
    { most, input, signal }: { most: number; input: number; signal: AbortSignal },
  ): AsyncGenerator<readonly ModelDelta[]> {
    const cut = tokensOf(text.length) > most
    const words = wordsOf(cut ? text.slice(0, most * 4) : text)
    let characters = 0
    for (let at = 0; at < words.length; at += wordsPerBatch) {
      if (intervalMs > 0) await clock.sleep(intervalMs, signal)
      signal.throwIfAborted()
      const part = words.slice(at, at + wordsPerBatch).join('')
      characters += part.length
      yield [{ type: 'text', text: part }]
    }
    yield [
      { type: 'usage', usage: { inputTokens: input, outputTokens: tokensOf(characters) } },
      { type: 'finish', reason: cut ? 'length' : 'stop' },
    ]
  }
  return {
    async catalogue() {
      check()
      return models
    },
    async *stream(request) {
      check()
      modelOf(models, request.model)
      const signal = AbortSignal.any([request.signal, closing.signal])
      signal.throwIfAborted()
      const turn = async (): Promise<void> => {
        await new Promise(resolve => setImmediate(resolve))
        signal.throwIfAborted()
      }
      const { text, tool } = await answerTo(request, turn)
      const input = inputTokensOf(request)
      if (tool !== undefined) {
        const call = { id: `call_${clock.id()}`, name: tool.name, arguments: tool.arguments ?? {} }
        yield [
          { type: 'tool_call', call },
          {
            type: 'usage',
            usage: {
              inputTokens: input,
              outputTokens: tokensOf(JSON.stringify(call.arguments).length),
            },
          },
          { type: 'finish', reason: 'tool_calls' },
        ]
        return
      }
      const rest =
        request.prefill !== undefined && text.startsWith(request.prefill)
          ? text.slice(request.prefill.length)
          : text
      yield* written(rest, {
        most: Math.min(request.outputTokensMax ?? answerTokensMax, answerTokensMax),
        input,
        signal,
      })
    },
    async ping() {
      check()
    },
    async close() {
      if (shut()) closing.abort(closedFault(serviceName))
    },
  }
}

export default defineAdapter<ModelProvider>({
  port: 'models',
  scheme: 'offline',
  options: {
    interval_ms:
      'Pause before each few words, so that a person sees them come; ' +
      `default ${intervalMsUsual}.`,
  },
  open: async ({ url, clock }) =>
    offline({
      clock,
      intervalMs: wholeOption(url, 'interval_ms', intervalMsUsual, { max: 60_000 }),
    }),
})
