// The tool `current_time`.
import { Type as t, type Static } from 'typebox'
import { fault } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { Tool } from '../runs/api.ts'

const Arguments = t.Object(
  {
    time_zone: t.Optional(
      t.String({
        minLength: 1,
        maxLength: 64,
        description: "An IANA time zone such as Africa/Algiers; the user's own when left out.",
      }),
    ),
  },
  { additionalProperties: false },
)

/** INVALID_FIELD when the zone is not known. */
function partsOf(at: number, timeZone: string): Readonly<Record<string, string>> {
  try {
    // `longOffset` is GMT±hh:mm, and in older versions of ICU GMT alone where the offset is none;
    // English names, whatever the machine's language is.
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      weekday: 'long',
      timeZoneName: 'longOffset',
    })
    return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: 'time_zone', why: 'is not an IANA time zone that is known here' },
      { cause },
    )
  }
}

/** ISO 8601 with the zone's offset at that moment, and the day's name. */
export function localTime(
  at: number,
  timeZone: string,
): { time: string; weekday: string; time_zone: string } {
  const {
    year,
    month,
    day,
    hour,
    minute,
    second,
    weekday,
    timeZoneName = '',
  } = partsOf(at, timeZone)
  return {
    time: `${year}-${month}-${day}T${hour}:${minute}:${second}${timeZoneName.slice(3) || '+00:00'}`,
    weekday: weekday!,
    time_zone: timeZone,
  }
}

export const currentTime = ({ clock }: { clock: Clock }): Tool => ({
  name: 'current_time',
  effect: 'none',
  parameters: Arguments,
  description:
    'The date, the time and the day of the week now. Use it whenever an answer depends on ' +
    'today or on the hour; never guess them.',
  run: (args, { timeZone }) => ({
    content: JSON.stringify(
      localTime(clock.now(), (args as Static<typeof Arguments>).time_zone ?? timeZone),
    ),
  }),
})
