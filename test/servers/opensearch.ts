// OpenSearch itself, one node in a Java process, from the libraries that Maven Central has of it:
// no distribution, no container.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { installed, lastLine, started, type Ready, type Started } from './server.ts'

const source = join(import.meta.dirname, 'opensearch')
const recipe = ['pom.xml', 'SHA256SUMS', 'TestNode.java']
const textOf = (name: string) => readFileSync(join(source, name), 'utf8')
const run = (command: string, args: readonly string[], cwd: string) =>
  execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'], timeout: 300_000 })

/** Every library is the one that was looked at, and there is no other. */
function verify(folder: string): void {
  const expected = textOf('SHA256SUMS').trim().split('\n')
  const found = readdirSync(folder)
    .sort()
    .map(
      name =>
        `${createHash('sha256')
          .update(readFileSync(join(folder, name)))
          .digest('hex')}  ${name}`,
    )
  const wrong = [
    ...found.filter(line => !expected.includes(line)),
    ...expected.filter(line => !found.includes(line)),
  ][0]
  if (wrong !== undefined) throw new Error(`${wrong.split('  ')[1]} is not what SHA256SUMS says`)
}

/** Maven gets the libraries from wherever its own settings say that Maven Central is. */
function make(folder: string): void {
  copyFileSync(join(source, 'pom.xml'), join(folder, 'pom.xml'))
  const lib = join(folder, 'lib')
  run(
    'mvn',
    ['--quiet', '--batch-mode', 'dependency:copy-dependencies', '-DoutputDirectory=lib'],
    folder,
  )
  verify(lib)
  for (const plugin of readdirSync(lib).filter(name => name.endsWith('.zip')))
    run('jar', ['xf', plugin], lib)
  run('javac', ['-nowarn', '-cp', 'lib/*', '-d', 'classes', join(source, 'TestNode.java')], folder)
  mkdirSync(join(folder, 'config'))
}

const serves: Ready = port =>
  fetch(`http://127.0.0.1:${port}/_cluster/health?wait_for_status=yellow&timeout=1s`, {
    signal: AbortSignal.timeout(3000),
  }).then(
    ({ ok }) => ok,
    () => false,
  )

export async function startOpenSearch(): Promise<Started> {
  let folder: string
  try {
    folder = await installed('opensearch', recipe.map(textOf).join('\n'), make)
  } catch (error) {
    return {
      why:
        `it could not be made of Maven Central's libraries; it takes mvn and a JDK of 11 or ` +
        `newer (${lastLine(error)})`,
    }
  }
  // Data and logs are the run's own; the home folder is only read.
  return started(
    'opensearch',
    ({ port, dataDir }) => ({
      command: 'java',
      args: [
        '-Xms512m',
        '-Xmx512m',
        '-XX:+UseSerialGC',
        '-Djava.awt.headless=true',
        '-Dlog4j2.disable.jmx=true',
        '-cp',
        [join(folder, 'classes'), join(folder, 'lib', '*')].join(':'),
        'TestNode',
        `path.home=${folder}`,
        `path.data=${dataDir}`,
        `path.logs=${dataDir}`,
        `http.port=${port}`,
        'transport.port=0',
        'network.host=127.0.0.1',
        'discovery.type=single-node',
        'cluster.routing.allocation.disk.threshold_enabled=false',
        'node.name=test',
        'cluster.name=test',
      ],
    }),
    { url: port => `opensearch://127.0.0.1:${port}/`, ready: serves },
  )
}
