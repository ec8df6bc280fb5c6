import { client } from './generated/client.gen'
import {
  createUpload,
  downloadUpload,
  exchangeApiKey,
  followRun,
  getBalance,
  getRun,
  getSession,
  getUpload,
  listMessages,
  listModels,
  listRuns,
  listSessions,
  startRun,
  type RunEvent,
} from './generated'
import {
  apiKey,
  baseUrl,
  check,
  fileText,
  given,
  known,
  nowhere,
  pause,
  play,
  step,
} from './support'

client.setConfig({ baseUrl })
const ids = { run: '', session: '' }
const seen = { answer: '', since: '' }

step('sign in', async () => {
  const { data } = await exchangeApiKey({ body: { api_key: apiKey } })
  const token = given(data, 'token')
  check(token.token_type === 'Bearer' && token.expires_in > 0, 'the token is a bearer token')
  client.setConfig({ auth: () => token.access_token })
})

step('models', async () => {
  const { data } = await listModels()
  const defaults = given(data, 'models').items.filter(model => model.is_default)
  check(defaults.length === 1, 'there is one default model')
  check(known<number>(defaults[0]!.price.input_per_1k) >= 0, 'it has a price')
})

step('balance', async () => {
  const { balance: whole, held, available } = given((await getBalance()).data, 'balance')
  check(whole > 0 && available === whole - held, 'the balance adds up')
})

step('begin', async () => {
  const started = given((await startRun({ body: { message: 'Hello' } })).data, 'run')
  check(started.status === 'running' && !started.resumed, 'the run is new and running')
  ids.run = started.run_id
  ids.session = started.session_id
})

/** The client reads the stream itself; it hands over type and data, and ends with the stream. */
step('events', async () => {
  const found: RunEvent[] = []
  const { stream } = await followRun({
    path: { run_id: ids.run },
    // It is called for a frame without data, too, such as the one that sets the pause.
    onSseEvent: ({ id, event, data }) => {
      if (event !== undefined)
        found.push({ seq: Number(id), type: event, data } as unknown as RunEvent)
    },
  })
  let count = 0
  for await (const _ of stream) count += 1
  const text = found.map(event => (event.type === 'token' ? event.data.text : '')).join('')
  const last = found.at(-1)
  check(count === found.length, 'the stream has as many events')
  check(text.length > 0, 'the answer has a text')
  seen.answer = text
  check(last?.type === 'done' && last.data.status === 'done', 'the run is done')
  check(last.data.session_id === ids.session, 'the last event names the session')
})

step('outcome', async () => {
  const run = given((await getRun({ path: { run_id: ids.run } })).data, 'run')
  check(run.status === 'done' && run.answer === seen.answer, 'the run has that answer')
  check(known<number>(given(run.usage, 'usage').total_tokens) > 0, 'it used tokens')
  seen.since = run.created_at
})

step('runs since', async () => {
  const { data } = await listRuns({
    query: { status: 'done', session_id: ids.session, from: seen.since },
  })
  const found = given(data, 'runs').items.map(run => run.run_id)
  check(found.join() === ids.run, 'the run is found by its time')
})

step('messages', async () => {
  const { data } = await listMessages({ path: { id: ids.session } })
  const roles = given(data, 'messages').items.map(message => message.role)
  check(roles.join() === 'user,assistant', 'there is a question and an answer')
})

step('sessions', async () => {
  const [session] = given((await listSessions()).data, 'sessions').items
  check(session?.id === ids.session && session.active_run_id === null, 'the session is idle')
})

step('pages', async () => {
  await startRun({ body: { message: 'Another one' } })
  const first = await listSessions({ query: { limit: 1 } })
  const { items, next_cursor: cursor } = given(first.data, 'first page')
  const second = await listSessions({ query: { limit: 1, cursor: given(cursor, 'cursor') } })
  const rest = given(second.data, 'second page')
  check(items.length === 1 && rest.items[0]?.id === ids.session, 'the pages follow each other')
  check(rest.next_cursor === undefined, 'the last page has no cursor')
})

step('upload', async () => {
  const body = { filename: 'notes.md', mime: 'text/markdown', content_base64: btoa(fileText) }
  const path = { id: given((await createUpload({ body })).data, 'upload').upload_id }
  const read = async () => given((await getUpload({ path })).data, 'upload')
  let state = await read()
  while (state.status === 'parsing') {
    await pause()
    state = await read()
  }
  check(state.text?.trim() === fileText.trim(), 'the text of the file is there')
  const raw = known<Blob | File>(
    given((await downloadUpload({ path, parseAs: 'blob' })).data, 'file'),
  )
  check((await raw.text()) === fileText, 'the file is as it was')
})

step('not found', async () => {
  const { error, response } = await getSession({ path: { id: nowhere } })
  const { code, request_id } = given(error, 'error')
  check(response?.status === 404 && known(code) === 'NOT_FOUND', 'the code is NOT_FOUND')
  check(request_id.length > 0, 'the error names its request')
})

step('bad request', async () => {
  const { error, response } = await listSessions({ query: { cursor: 'nonsense' } })
  const { code } = given(error, 'error')
  check(response?.status === 400 && known(code) === 'CURSOR_INVALID', 'the code is CURSOR_INVALID')
})

void play()
