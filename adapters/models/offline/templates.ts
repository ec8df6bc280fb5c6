// The offline model's own words, in the language of the question.
import type { Language } from './words.ts'

type Phrases = {
  readonly earlier: { readonly user: string; readonly message: string }
  readonly found: string
  readonly summary: string
  readonly nothing: (sources: string) => string
  readonly alone: (tools: string) => string
  readonly toolSaid: (name: string) => string
  readonly badArguments: (name: string) => string
  readonly planLooks: (request: string) => string
  readonly planAnswers: string
}

export const phrases: Readonly<Record<Language, Phrases>> = {
  en: {
    earlier: { user: 'you, earlier', message: 'your message' },
    found: 'These passages speak most directly of your question:',
    summary: 'These sentences carry the subjects that come up most:',
    nothing: sources =>
      `I searched ${sources} and found no sentence that shares a word with your question. ` +
      'I match words, not meaning: try the words that the text itself uses.',
    alone: tools =>
      'I am the built-in offline model: a small program that quotes, not a language model. ' +
      'I can find the passages of an attachment, or of our conversation, that answer a ' +
      'question, summarise a text by its own sentences, write a numbered plan out of a ' +
      `request, and call a tool that you name${tools}. I cannot write freely, reason, ` +
      'translate or know anything that was not given to me, and your message came with ' +
      'nothing to quote from. Attach a document and ask about it; or ask the operator to ' +
      'connect a language model by the setting MODELS_URL.',
    toolSaid: name => `The tool ${name} answered:`,
    badArguments: name =>
      `You asked for the tool ${name}, but what follows its name is not valid JSON, so I ` +
      'did not call it.',
    planLooks: request => `Look for what the material says about: ${request}`,
    planAnswers: 'Answer with the passages found and their sources',
  },
  fr: {
    earlier: { user: 'vous, plus tôt', message: 'votre message' },
    found: 'Voici les passages qui parlent le plus directement de votre question :',
    summary: 'Voici les phrases qui portent les sujets les plus fréquents :',
    nothing: sources =>
      `J'ai cherché dans ${sources} sans trouver de phrase qui partage un mot avec votre ` +
      'question. Je compare des mots, pas du sens : essayez les mots du texte lui-même.',
    alone: tools =>
      'Je suis le modèle hors ligne intégré : un petit programme qui cite, pas un modèle ' +
      `de langage. Je sais trouver les passages d'une pièce jointe ou de notre ` +
      'conversation qui répondent à une question, résumer un texte par ses propres ' +
      `phrases, tirer un plan numéroté d'une demande et appeler un outil que vous ` +
      `nommez${tools}. Je ne sais ni rédiger librement, ni raisonner, ni traduire, et je ` +
      `ne connais rien de ce qui ne m'a pas été donné ; votre message ne contenait rien à ` +
      `citer. Joignez un document et posez votre question ; ou demandez à l'exploitant de ` +
      'relier un modèle de langage par le réglage MODELS_URL.',
    toolSaid: name => `L'outil ${name} a répondu :`,
    badArguments: name =>
      `Vous demandez l'outil ${name}, mais ce qui suit son nom n'est pas du JSON valide ; ` +
      `je ne l'ai donc pas appelé.`,
    planLooks: request => `Chercher ce que le texte dit de : ${request}`,
    planAnswers: 'Répondre par les passages trouvés et leurs sources',
  },
}
