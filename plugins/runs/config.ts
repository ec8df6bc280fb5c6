import { Type as t, type Static } from 'typebox'

const setting = (fallback: number, minimum: number, description: string) =>
  t.Integer({ default: fallback, minimum, description })

export const RunsConfig = t.Object({
  active_max: setting(1000, 1, 'Runs that this process drives at a time; more wait.'),
  active_per_org_max: setting(500, 1, 'Of these, runs of one organisation.'),
  waiting_max: setting(
    2000,
    0,
    'Runs that may wait for this process; beyond them a start is answered 429.',
  ),
  waiting_per_org_max: setting(1000, 0, 'Of these, runs of one organisation.'),
  message_bytes_max: setting(
    4_000_000,
    1000,
    'Bytes of a message, in UTF-8; by default as many as a window of a million tokens holds.',
  ),
  queue_max: setting(100, 1, 'Runs that may wait in one session.'),
  lease_ms: setting(
    15_000,
    300,
    'How long a silent driver keeps its run before another takes over, in milliseconds.',
  ),
  sweep_ms: setting(2000, 50, 'How often runs that nobody drives are looked for, in milliseconds.'),
  stall_ms: setting(
    120_000,
    100,
    'How long a model may send nothing before its call is tried again, in milliseconds. ' +
      'Three times as long where it reasons.',
  ),
  tries_max: setting(
    3,
    1,
    'Times that a model call may break off without having come further, before the run fails.',
  ),
  takes_max: setting(
    20,
    2,
    'Drivers that may take over a run without bringing it further, before it fails.',
  ),
  deaths_max: setting(
    2,
    1,
    'Processes that may die or hang during the same tool call or model call. Then the run ' +
      'fails with an error that names the call.',
  ),
  step_bytes_max: setting(
    8_388_608,
    65_536,
    'Bytes of text, reasoning included, that one model call may bring. A longer text is cut there.',
  ),
  steps_max: setting(50, 2, 'Model calls of one run.'),
  rounds_max: setting(
    12,
    1,
    'Model calls in a row that may ask for tools, for one answer or one step of a plan.',
  ),
  plan_steps_max: setting(12, 1, 'Steps of a plan.'),
  replans_max: setting(2, 0, 'New plans after a failed step.'),
  question_ms: setting(
    604_800_000,
    1000,
    'How long a run waits for an answer of its user, in milliseconds.',
  ),
  answer_bytes_max: setting(65_536, 256, 'Bytes (as JSON) of an answer to a question of a run.'),
  compact_after_ms: setting(
    600_000,
    0,
    'How long after the end of a run its log is compacted, in milliseconds.',
  ),
  events_kept_ms: setting(
    2_592_000_000,
    0,
    'How long after the end of a run its events can be read again, in milliseconds. 0: as ' +
      'long as the conversation.',
  ),
  events_bytes_max_per_org: setting(
    0,
    0,
    'Bytes of compacted events (as JSON) that the ended runs of one organisation may keep. ' +
      'Beyond it the oldest runs lose all events but their ends. 0: unbounded.',
  ),
  keys_kept_ms: setting(
    2_592_000_000,
    0,
    'How long after the end of a run its idempotency key still names that run, in ' +
      'milliseconds. Never shorter than its events are kept. 0: as long as the conversation.',
  ),
  retention_ms: setting(
    60_000,
    50,
    'How often ended runs are looked for that are due for retention, in milliseconds.',
  ),
  arguments_bytes_max: setting(
    262_144,
    1024,
    'Bytes (as JSON) of the arguments of a tool call, or of a question that a tool asks. A ' +
      'call beyond it fails, and the model is told.',
  ),
  arguments_depth_max: setting(
    64,
    1,
    'Levels of arrays and objects in the arguments of a tool call.',
  ),
  page_chars_max: setting(
    4_000_000,
    1,
    'Characters of the messages on one page of a conversation. A page with long messages ' +
      'holds fewer of them, and at least one exchange.',
  ),
  search_chars_max: setting(
    400_000,
    1000,
    'Characters of one message, from its beginning, that search covers.',
  ),
  search_wait_ms: setting(
    1000,
    0,
    'How long after the end of a run its messages wait to be indexed for search together ' +
      'with others, in milliseconds.',
  ),
  sessions_max_per_org: setting(
    1_000_000,
    1,
    'Conversations of one organisation; beyond them none is begun.',
  ),
  excerpt_bytes_max: setting(
    65_536,
    256,
    'Bytes (as JSON) of a message or an answer that the document of a run holds. The event ' +
      'log holds a longer text whole.',
  ),
  result_chars_max: setting(
    16_000,
    1000,
    'Characters of a tool result that the model reads; a longer one is kept whole as an artifact.',
  ),
})
export type RunsConfig = Static<typeof RunsConfig>
