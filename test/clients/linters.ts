// The two linters that most users of OpenAPI know, with their recommended rules. None is turned
// off, and a warning is a finding.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { npmCommand, run } from './child.ts'
import type { Client, Stage } from './client.ts'

/** One line for each finding: the rule, the place and what it says. */
type Findings = readonly string[]
const lint = (findings: (...of: Parameters<Stage['run']>) => Promise<Findings>): Stage => ({
  name: 'lint',
  async run(place) {
    const found = await findings(place)
    if (found.length === 0) return
    throw new Error([`${found.length} findings`, ...found.slice(0, 20)].join('\n'))
  },
})

type RedoclyReport = {
  readonly problems: readonly {
    readonly ruleId: string
    readonly message: string
    readonly location: readonly { readonly pointer?: string }[]
  }[]
}
const redocly = lint(async ({ document, folder, tools }) => {
  const report = await run(
    npmCommand(tools.node, 'redocly'),
    ['lint', document, '--extends=recommended', '--format=json', '--max-problems=1000'],
    { cwd: folder, codes: [0, 1] },
  )
  const { problems } = JSON.parse(report) as RedoclyReport
  return problems.map(
    ({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer ?? ''} ${message}`,
  )
})

type SpectralReport = readonly {
  readonly code: string
  readonly message: string
  readonly path: readonly (string | number)[]
}[]
const spectral = lint(async ({ document, folder, tools }) => {
  const rules = join(folder, 'spectral.json')
  writeFileSync(rules, JSON.stringify({ extends: [['spectral:oas', 'recommended']] }))
  const report = await run(
    npmCommand(tools.node, 'spectral'),
    ['lint', document, '--ruleset', rules, '--format', 'json', '--quiet'],
    { cwd: folder, codes: [0, 1] },
  )
  return (JSON.parse(report) as SpectralReport).map(
    ({ code, message, path }) => `${code} ${path.join('/')} ${message}`,
  )
})

export const linters: readonly Client[] = [
  { name: 'redocly', needs: ['node'], stages: [redocly] },
  { name: 'spectral', needs: ['node'], stages: [spectral] },
]
