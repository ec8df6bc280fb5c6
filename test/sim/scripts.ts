// What happens in a simulated world: what the model says, what the clients do, and what must have
// come of it.
import { again, broken, cancelled, lengthy, plain, seam, unaided } from './scripts/answers.ts'
import { bankrupt, outgrown, outgrownCancelled } from './scripts/credits.ts'
import { beside, cancelledWaiting, question } from './scripts/questions.ts'
import { paused, queue, slow } from './scripts/queues.ts'
import type { Script } from './scripts/script.ts'
import { drained, fatal, fatalModel, many, plan, tools } from './scripts/tools.ts'

export const scripts: readonly Script[] = [
  plain,
  unaided,
  broken,
  again,
  seam,
  tools,
  many,
  lengthy,
  beside,
  fatal,
  fatalModel,
  question,
  cancelled,
  cancelledWaiting,
  queue,
  slow,
  paused,
  outgrown,
  bankrupt,
  outgrownCancelled,
  plan,
  drained,
]
