// Finds the template that a path belongs to, whatever the method. `/sessions/search` never matches
// `/sessions/{id}`, even where only GET has it.
import type { Method } from '#contracts/contract.ts'

type Template = {
  readonly path: string
  readonly segments: readonly string[]
  readonly methods: Set<Method>
}
const isParameter = (segment: string) => segment.startsWith('{')

/**
 * Whether one path could match both, and `a` has a literal where they first differ. Every router
 * prefers that one.
 */
function isRival(a: Template, b: Template): boolean {
  if (a === b || a.segments.length !== b.segments.length) return false
  if (
    !a.segments.every(
      (segment, i) =>
        isParameter(segment) || isParameter(b.segments[i]!) || segment === b.segments[i],
    )
  )
    return false
  const first = a.segments.findIndex(
    (segment, i) => isParameter(segment) !== isParameter(b.segments[i]!),
  )
  return first >= 0 && !isParameter(a.segments[first]!)
}
const segmentsOf = (path: string) =>
  path.split('/').map(segment => (segment.includes('%') ? decodeURIComponent(segment) : segment))
const fits = ({ segments }: Template, asked: readonly string[]) =>
  segments.length === asked.length &&
  segments.every((segment, i) => (isParameter(segment) ? asked[i] !== '' : segment === asked[i]))

export function createTemplates(
  rows: readonly { readonly method: Method; readonly path: string }[],
) {
  const all = new Map<string, Template>()
  for (const { method, path } of rows) {
    const template = all.get(path) ?? { path, segments: path.split('/'), methods: new Set() }
    all.set(path, template)
    template.methods.add(method)
  }
  const templates = [...all.values()]
  const rivals = new Map(
    templates.map(one => [one.path, templates.filter(other => isRival(other, one))]),
  )
  return {
    /** Whether the path belongs to another template, which lacks the method that led here. */
    isMisled: (template: string, path: string): boolean => {
      const others = rivals.get(template) ?? []
      if (others.length === 0) return false
      const asked = segmentsOf(path)
      return others.some(other => fits(other, asked))
    },
    /** Methods of the template that the path belongs to; none where there is no such template. */
    methodsAt: (path: string): readonly Method[] => {
      const asked = segmentsOf(path)
      const found = templates.filter(template => fits(template, asked))
      const first = found.find(one => !found.some(other => isRival(other, one)))
      return [...(first?.methods ?? [])]
    },
  }
}
export type Templates = ReturnType<typeof createTemplates>
