import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { blocksOf, follow, looksLike } from './guide.ts'

const home = mkdtempSync(join(tmpdir(), 'guide-test-'))
const fence = '```'
type Blocks = readonly (readonly [info: string, text: string])[]
const guide = (...blocks: Blocks) => {
  const path = join(mkdtempSync(join(home, 'guide-')), 'guide.md')
  const parts = blocks.map(([info, text]) => `Prose.\n\n${fence}${info}\n${text}\n${fence}\n`)
  writeFileSync(path, `# A guide\n\n${parts.join('\n')}`)
  return path
}
const followed = (blocks: Blocks, more: Partial<Parameters<typeof follow>[1]> = {}) =>
  follow(guide(...blocks), { cwd: mkdtempSync(join(home, 'cwd-')), ...more })
const fails = async (sentence: RegExp, work: Promise<unknown>) =>
  assert.match(
    await work.then(
      () => 'it was followed',
      (error: Error) => error.message,
    ),
    sentence,
  )

test('files are written where the shell stands, and it keeps folder and variables', async () => {
  const cwd = mkdtempSync(join(home, 'cwd-'))
  const steps = await followed(
    [
      ['sh run', 'mkdir -p deep/er\ncd deep\nWORD="two words"'],
      ['json file=er/a.json', '{ "port": 8080 }'],
      ['sh run', 'echo "$WORD, $GIVEN"; cat er/a.json'],
      ['text output', 'two words, …\n{ "port": 8080 }'],
    ],
    { cwd, env: { GIVEN: 'from outside' }, replace: { 8080: '4711' } },
  )
  assert.is(readFileSync(join(cwd, 'deep/er/a.json'), 'utf8'), '{ "port": 4711 }\n')
  assert.is(steps[2]!.said, 'two words, from outside\n{ "port": 4711 }\n')
})

test('a step that differs from the guide fails with its line and its output', async () => {
  await fails(
    /^guide\.md:5 it ended with 3\n--- said:\nbefore\n$/,
    followed([['sh run', 'echo before; exit 3']]),
  )
  await fails(/guide\.md:5 it ended with 1/, followed([['sh run', 'false\ntrue']]))
  await fails(/guide\.md:5 it succeeded/, followed([['sh run=fails', 'true']]))
  await fails(
    /guide\.md:11 the guide shows\nfour/,
    followed([
      ['sh run', 'echo three'],
      ['text output', 'four'],
    ]),
  )
  await fails(/it took longer than 200 ms/, followed([['sh run', 'sleep 30']], { blockMsMax: 200 }))
  await followed([
    ['sh run=fails', 'echo no >&2; exit 1'],
    ['text output', 'no'],
  ])
})

test('a block without an instruction is an error before anything is done', async () => {
  const cwd = mkdtempSync(join(home, 'cwd-'))
  for (const info of ['sh', '', 'sh ruin', 'js file=a.js run'])
    await fails(
      /guide\.md:11 a block says one thing of file, run, serve/,
      followed(
        [
          ['sh run', 'touch done'],
          [info, 'x'],
        ],
        { cwd },
      ),
    )
  assert.not(existsSync(join(cwd, 'done')))
  assert.throws(() => blocksOf(`${fence}sh run\necho`), /the guide:1 the block never ends/)
  assert.equal(
    blocksOf(`1. One\n\n   ${fence}\`sh run\n   ${fence}\n     x\n   ${fence}\`\n`).map(
      ({ text }) => text,
    ),
    [`${fence}\n  x\n`],
  )
})

test('a server runs beside the shell until it is stopped, or the guide ends', async () => {
  const server = (word: string) =>
    `node -e 'setInterval(() => {}, 1000); for (const signal of ["SIGINT", "SIGTERM"]) ` +
    `process.on(signal, () => { fs.writeFileSync("${word}", signal); process.exit() }); ` +
    `console.log("${word} at last")'`
  const cwd = mkdtempSync(join(home, 'cwd-'))
  const endOf = (word: string) => readFileSync(join(cwd, word), 'utf8')
  await followed(
    [
      ['sh serve=one until="at last"', server('one')],
      ['text output', 'one at last'],
      ['sh run=fails', 'test -f one'],
      ['text stop=one', '^C'],
      ['sh run', 'test -f one'],
      ['sh serve=two until="at last"', server('two')],
    ],
    { cwd },
  )
  assert.equal([endOf('one'), endOf('two')], ['SIGINT', 'SIGTERM'])
  await fails(/it ended with 0/, followed([['sh serve=one until="never"', 'echo soon']]))
  await fails(/nothing called two was started/, followed([['text stop=two', '']]))
})

test('an output is compared whole, and … stands for anything in a line or for any lines', () => {
  for (const [said, shown, same] of [
    ['a\nb\n', 'a\nb', true],
    ['a\nb', 'a', false],
    ['a', 'a\nb', false],
    ['a  \n\n', 'a', true],
    ['a.c', 'abc', false],
    ['abc', 'a.c', false],
    ['took 12 ms', 'took … ms', true],
    ['a\nx\ny\nb', 'a\n…\nb', true],
    ['a\nb', 'a\n…\nb', true],
    ['a\nb', '…\nb', true],
    ['a\nb', '…\na', false],
    ['one\ntwo', 'o…o', false],
  ] as const)
    assert.is(looksLike(said, shown), same, `${said} / ${shown}`)
})

test.after(() => rmSync(home, { recursive: true, force: true }))
test.run()
