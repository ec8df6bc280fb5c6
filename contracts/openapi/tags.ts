// The chapters of the API document, in the order in which a client meets them.
export const tags = {
  'Sign-in': 'Accounts, and the tokens that every other operation asks for.',
  'API keys': 'Keys for programs. POST /auth/token exchanges one for an access token.',
  Models: 'What may be chosen as `model` of a run.',
  Runs: 'Start an agent, follow what it does, answer its questions, stop it.',
  Conversations: 'Sessions: their history, their artifacts and the runs that wait in them.',
  Files: 'What agents read (uploads) and what they make (artifacts).',
  Credits: 'What runs are paid with.',
  Plugins: 'For whoever runs the platform, with the OPERATOR_TOKEN.',
  Health: 'For load balancers and monitoring.',
  Documentation: 'This document, for programs and for people.',
} as const
