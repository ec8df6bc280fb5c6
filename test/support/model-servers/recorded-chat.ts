// Recorded answers of servers that speak chat completions, and the adapter that reads them.
import nock from 'nock'
import openai from '#adapters/models/openai.ts'
import { systemClock } from '#adapters/clock/system.ts'
import type { ModelDelta, ModelRequest } from '#ports/models.ts'
import { opening } from '../../conformance/opening.ts'
import { hear } from './provider.ts'
import { frame } from './turn.ts'

const secret = (name: string) => (name === 'OPENAI_API_KEY' ? 'sk-from-the-environment' : undefined)
export const openUrl = (url: string) => openai.open(opening(url, { clock: systemClock(), secret }))
/** The result of one call that gets a server's recorded answer. */
export async function recorded(
  frames: readonly (object | string)[],
  url = 'openai:http://model.test/v1?model=m',
  request: Partial<ModelRequest> = {},
): Promise<{ deltas: ModelDelta[]; body: Record<string, unknown>; error: Error | undefined }> {
  let body: Record<string, unknown> = {}
  nock('http://model.test')
    .post('/v1/chat/completions', sent => Boolean((body = sent as typeof body)))
    .reply(200, frames.map(one => (typeof one === 'string' ? one : frame(one))).join(''), {
      'content-type': 'text/event-stream',
    })
  const provider = await openUrl(url)
  try {
    return { ...(await hear(provider, request)), body }
  } finally {
    await provider.close()
    nock.cleanAll()
  }
}
export const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'x',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
export const doneFrame = frame('[DONE]')
