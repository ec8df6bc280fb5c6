// Five-field cron expressions in a time zone.
import { Cron } from 'croner'
import { fault } from '#contracts/faults.ts'

/**
 * The first time after `after`, in milliseconds since the epoch. INVALID_FIELD names `cron` or
 * `timezone`.
 */
export function nextTime(cron: string, timezone: string, after: number): number {
  // UTC needs no time zone database, which takes 6 MiB.
  const zone = timezone === 'UTC' ? { utcOffset: 0 } : { timezone }
  try {
    if (timezone !== 'UTC') new Intl.DateTimeFormat('en', { timeZone: timezone })
  } catch (error) {
    throw fault(
      'INVALID_FIELD',
      { field: 'timezone', why: 'not a time zone of the IANA database' },
      { cause: error },
    )
  }
  // The library reads a question mark as the current time, so it is refused.
  if (cron.trim().split(/\s+/).length !== 5 || cron.includes('?'))
    throw fault('INVALID_FIELD', {
      field: 'cron',
      why: 'five fields: minute, hour, day of month, month, day of week',
    })
  let next: Date | null
  try {
    next = new Cron(cron, { ...zone, mode: '5-part' }).nextRun(new Date(after))
  } catch (error) {
    throw fault(
      'INVALID_FIELD',
      { field: 'cron', why: (error as Error).message.replace(/^Cron\w+: |\.$/g, '') },
      { cause: error },
    )
  }
  if (!next) throw fault('INVALID_FIELD', { field: 'cron', why: 'it never comes' })
  return next.getTime()
}
