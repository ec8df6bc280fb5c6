// What the journeys in TypeScript share. Clients are not told of it: they check what they get.

declare const process: { readonly env: Readonly<Record<string, string>>; exitCode: number }

export const baseUrl = process.env['BASE_URL']!
export const apiKey = process.env['API_KEY']!
/** An id of nothing. */
export const nowhere = '00000000-0000-4000-8000-000000000000'
export const fileText = '# Notes\n\nThe bridge opens at noon.\n'

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`It does not hold that ${what}.`)
}

/** A value that the generator knows the type of; of `any` the compiler complains. */
export const known = <T>(value: T & (0 extends 1 & T ? never : unknown)): T => value

/** A value that must be there. */
export function given<T>(value: T | null | undefined, what: string): T {
  if (value === undefined || value === null) throw new Error(`There is no ${what}.`)
  return value
}

/** Server-Sent Events as the document says: `id` is seq, `event` is type, `data` is JSON. */
export const framesOf = (text: string): { seq: number; type: string; data: unknown }[] =>
  text.split('\n\n').flatMap(frame => {
    const field = (name: string) =>
      frame
        .split('\n')
        .find(line => line.startsWith(`${name}: `))
        ?.slice(name.length + 2)
    const type = field('event')
    if (type === undefined) return []
    return [{ seq: Number(field('id')), type, data: JSON.parse(field('data')!) as unknown }]
  })

export const pause = () => new Promise(resolve => setTimeout(resolve, 50))

const steps: { readonly name: string; readonly run: () => Promise<void> }[] = []
/** Adds a step to the journey. */
export const step = (name: string, run: () => Promise<void>): void => {
  steps.push({ name, run })
}
/** Plays the steps one after the other, and prints the name of each that held. */
export async function play(): Promise<void> {
  for (const { name, run } of steps) {
    try {
      await run()
    } catch (error) {
      console.error(`${name}:`, error)
      process.exitCode = 1
      return
    }
    console.log(name)
  }
}
