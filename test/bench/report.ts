// REPORT.md: a chapter for each command that measures; each replaces its own and leaves the others.
import { cpus } from 'node:os'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const path = join(import.meta.dirname, 'REPORT.md')

/** When, with what and on what the figures were taken. */
export const circumstances = (command: string): string =>
  `\`${command}\`, ${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ` +
  `${cpus().length} × ${cpus()[0]?.model ?? 'CPU'}`

/** Writes the chapter under `# title` and prints it. */
export function writeChapter(title: string, text: string): void {
  const chapters = existsSync(path) ? readFileSync(path, 'utf8').split(/^(?=# )/m) : []
  const chapter = `# ${title}\n\n${text.trim()}\n`
  const at = chapters.findIndex(one => one.startsWith(`# ${title}\n`))
  if (at < 0) chapters.push(chapter)
  else chapters[at] = chapter
  writeFileSync(
    path,
    chapters
      .map(one => one.trim())
      .join('\n\n')
      .concat('\n'),
  )
  process.stdout.write(`\n${chapter}`)
}
