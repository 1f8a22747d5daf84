// Everyday words that praise or blame whatever the topic is. Pure data.

const praising =
  'good great nice excellent perfect wonderful lovely amazing awesome fantastic brilliant superb beautiful helpful useful ' +
  'clear clever love like enjoy happy glad pleased fun funny cool best works worked solved fixed thanks thank grateful ' +
  'interesting easy fine sweet super delicious liked loved enjoyed helped success successful succeeded done saved sent ' +
  'created finished ok confirmed';
const blaming =
  'bad wrong incorrect false terrible awful horrible poor useless stupid boring confusing confused unclear ugly annoying ' +
  'hate dislike fail fails failed failing failure broken error errors problem worse worst missing lost angry disappointed ' +
  'nonsense mistake mistakes nothing denied invalid refused rejected cannot unable crash crashed unknown timeout';

export const praisingWords: ReadonlySet<string> = new Set(praising.split(' '));
export const blamingWords: ReadonlySet<string> = new Set(blaming.split(' '));
/** They turn the words after them, to the next punctuation mark. */
export const negatingWords: ReadonlySet<string> = new Set(['not', 'no', 'never', 'without']);
