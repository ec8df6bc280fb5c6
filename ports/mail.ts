// Letters out.
import { port, type Lifecycle } from './token.ts'

export type Letter = { readonly to: string; readonly subject: string; readonly text: string; readonly html?: string }
export type Mailer = Lifecycle & {
  /** Handed over (to the outbox or the next server) when it resolves. UNAVAILABLE when it cannot be; INVALID_FIELD for an address or a subject with line breaks. */
  send(letter: Letter, options?: { readonly signal?: AbortSignal }): Promise<void>
}

export const Mail = port<Mailer>('mail')
