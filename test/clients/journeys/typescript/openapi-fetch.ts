import createClient from 'openapi-fetch'
import type { components, paths } from './generated/schema'
import {
  apiKey,
  baseUrl,
  check,
  fileText,
  framesOf,
  given,
  known,
  nowhere,
  pause,
  play,
  step,
} from './support'

type RunEvent = components['schemas']['RunEvent']

const client = createClient<paths>({ baseUrl })
const ids = { run: '', session: '' }
const seen = { answer: '', since: '' }

step('sign in', async () => {
  const { data } = await client.POST('/api/v1/auth/token', { body: { api_key: apiKey } })
  const token = given(data, 'token')
  check(token.token_type === 'Bearer' && token.expires_in > 0, 'the token is a bearer token')
  client.use({
    onRequest({ request }) {
      request.headers.set('authorization', `Bearer ${token.access_token}`)
    },
  })
})

step('models', async () => {
  const { data } = await client.GET('/api/v1/models')
  const defaults = given(data, 'models').items.filter(model => model.is_default)
  check(defaults.length === 1, 'there is one default model')
  check(known<number>(defaults[0]!.price.input_per_1k) >= 0, 'it has a price')
})

step('balance', async () => {
  const { data } = await client.GET('/api/v1/balance')
  const { balance: whole, held, available } = given(data, 'balance')
  check(whole > 0 && available === whole - held, 'the balance adds up')
})

step('begin', async () => {
  const { data } = await client.POST('/api/v1/chat', { body: { message: 'Hello' } })
  const started = given(data, 'run')
  check(started.status === 'running' && !started.resumed, 'the run is new and running')
  ids.run = started.run_id
  ids.session = started.session_id
})

step('events', async () => {
  const { data } = await client.GET('/api/v1/runs/{run_id}/events', {
    params: { path: { run_id: ids.run } },
    parseAs: 'text',
  })
  const found = framesOf(given(data, 'events')) as RunEvent[]
  const text = found.map(event => (event.type === 'token' ? event.data.text : '')).join('')
  const last = found.at(-1)
  check(text.length > 0, 'the answer has a text')
  seen.answer = text
  check(last?.type === 'done' && last.data.status === 'done', 'the run is done')
  check(last.data.session_id === ids.session, 'the last event names the session')
})

step('outcome', async () => {
  const { data } = await client.GET('/api/v1/runs/{run_id}', {
    params: { path: { run_id: ids.run } },
  })
  const run = given(data, 'run')
  check(run.status === 'done' && run.answer === seen.answer, 'the run has that answer')
  check(known<number>(given(run.usage, 'usage').total_tokens) > 0, 'it used tokens')
  seen.since = run.created_at
})

step('runs since', async () => {
  const { data } = await client.GET('/api/v1/runs', {
    params: { query: { status: 'done', session_id: ids.session, from: seen.since } },
  })
  const found = given(data, 'runs').items.map(run => run.run_id)
  check(found.join() === ids.run, 'the run is found by its time')
})

step('messages', async () => {
  const { data } = await client.GET('/api/v1/sessions/{id}/messages', {
    params: { path: { id: ids.session } },
  })
  const roles = given(data, 'messages').items.map(message => message.role)
  check(roles.join() === 'user,assistant', 'there is a question and an answer')
})

step('sessions', async () => {
  const { data } = await client.GET('/api/v1/sessions')
  const [session] = given(data, 'sessions').items
  check(session?.id === ids.session && session.active_run_id === null, 'the session is idle')
})

step('pages', async () => {
  await client.POST('/api/v1/chat', { body: { message: 'Another one' } })
  const first = await client.GET('/api/v1/sessions', { params: { query: { limit: 1 } } })
  const { items, next_cursor: cursor } = given(first.data, 'first page')
  const second = await client.GET('/api/v1/sessions', {
    params: { query: { limit: 1, cursor: given(cursor, 'cursor') } },
  })
  const rest = given(second.data, 'second page')
  check(items.length === 1 && rest.items[0]?.id === ids.session, 'the pages follow each other')
  check(rest.next_cursor === undefined, 'the last page has no cursor')
})

step('upload', async () => {
  const body = { filename: 'notes.md', mime: 'text/markdown', content_base64: btoa(fileText) }
  const { data } = await client.POST('/api/v1/uploads', { body })
  const path = { id: given(data, 'upload').upload_id }
  const read = async () =>
    given((await client.GET('/api/v1/uploads/{id}', { params: { path } })).data, 'upload')
  let state = await read()
  while (state.status === 'parsing') {
    await pause()
    state = await read()
  }
  check(state.text?.trim() === fileText.trim(), 'the text of the file is there')
  const raw = await client.GET('/api/v1/uploads/{id}/raw', { params: { path }, parseAs: 'text' })
  check(known<string>(given(raw.data, 'file')) === fileText, 'the file is as it was')
})

step('not found', async () => {
  const { error, response } = await client.GET('/api/v1/sessions/{id}', {
    params: { path: { id: nowhere } },
  })
  const { code, request_id } = given(error, 'error')
  check(response.status === 404 && known(code) === 'NOT_FOUND', 'the code is NOT_FOUND')
  check(request_id.length > 0, 'the error names its request')
})

step('bad request', async () => {
  const { error, response } = await client.GET('/api/v1/sessions', {
    params: { query: { cursor: 'nonsense' } },
  })
  const { code } = given(error, 'error')
  check(response.status === 400 && known(code) === 'CURSOR_INVALID', 'the code is CURSOR_INVALID')
})

void play()
