// Many texts analysed on the process's own thread, a little at a time.
import { setImmediate as turn } from 'node:timers/promises'
import type { Language } from '#ports/search.ts'
import type { Analyser } from './analyser.ts'

/** Work between two turns of the event loop, in characters analysed. */
const charactersMax = 20_000

/** Terms for each; other work of the process gets its turn between. */
export async function analysed<
  T extends { readonly text: string; readonly language?: Language | undefined },
>(all: readonly T[], analyser: Analyser): Promise<(T & { language: Language; terms: string })[]> {
  const done: (T & { language: Language; terms: string })[] = []
  let characters = 0
  for (const one of all) {
    const language = one.language ?? analyser.languageOf(one.text)
    done.push({ ...one, language, terms: analyser.terms(one.text, language).join(' ') })
    if ((characters += one.text.length) <= charactersMax) continue
    characters = 0
    await turn()
  }
  return done
}
