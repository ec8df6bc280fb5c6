import { definePlugin, into } from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { Artifacts } from '../files/api.ts'
import { Tools } from '../runs/api.ts'
import { calculator } from './calculator.ts'
import { ToolsConfig } from './config.ts'
import { currentTime } from './current-time.ts'
import { note } from './note.ts'
import { askQuiz, askUser } from './questions.ts'
import { createArithmeticPool } from './arithmetic-pool.ts'

export default definePlugin({
  name: 'tools',
  version: '1.0.0',
  kernel: '^1.0.0',
  uses: { clock: SystemClock, artifacts: Artifacts },
  config: ToolsConfig,
  services: { arithmetic: createArithmeticPool },
  contributes: [
    into(Tools, currentTime),
    into(Tools, calculator),
    into(Tools, () => askUser),
    into(Tools, () => askQuiz),
    into(Tools, note),
  ],
})
