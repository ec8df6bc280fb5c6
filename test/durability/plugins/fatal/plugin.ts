// Tools that end their process, or keep it from doing anything else, as a plugin with a bad mistake
// in it might.
import { appendFileSync } from 'node:fs'
import { Type as t } from 'typebox'
import { definePlugin, into } from '#kernel'
import { Tools, type Tool } from '../../../../plugins/runs/api.ts'

/** Each body says in this file that it has begun. */
const began = (name: string) => appendFileSync(process.env['FATAL_BEGAN']!, `${name}\n`)

const exits: Tool = {
  name: 'exits',
  description: 'Ends the process.',
  parameters: t.Object({}),
  effect: 'none',
  run() {
    began('exits')
    process.exit(1)
  },
}
const loops: Tool = {
  name: 'loops',
  description: 'Never ends, and lets nothing else happen.',
  parameters: t.Object({}),
  effect: 'keyed',
  run() {
    began('loops')
    for (;;);
  },
}

export default definePlugin({
  name: 'fatal',
  version: '1.0.0',
  kernel: '^1.0.0',
  contributes: [into(Tools, () => exits), into(Tools, () => loops)],
})
