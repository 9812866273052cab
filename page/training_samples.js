// Texts to train on.

/** @type {{name: string, text: string}[]} */
export const TRAINING_SAMPLES = [
  {
    name: "A tongue-twister",
    text: "Peter Piper picked a peck of pickled peppers.\n"
      + "A peck of pickled peppers Peter Piper picked.\n"
      + "If Peter Piper picked a peck of pickled peppers,\n"
      + "where's the peck of pickled peppers Peter Piper picked?\n",
  },
  {
    // Sennrich, Haddow and Birch 2016 explain byte-pair encoding with these words and counts.
    name: "Four words",
    text: `${"low ".repeat(5)}${"lower ".repeat(2)}${"newest ".repeat(6)}${"widest ".repeat(3)}`.trimEnd(),
  },
  {
    // The first sentence of the Universal Declaration of Human Rights.
    name: "Six languages",
    text: "All human beings are born free and equal in dignity and rights.\n"
      + "Tous les êtres humains naissent libres et égaux en dignité et en droits.\n"
      + "Todos los seres humanos nacen libres e iguales en dignidad y derechos.\n"
      + "Alle Menschen sind frei und gleich an Würde und Rechten geboren.\n"
      + "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.\n"
      + "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.\n",
  },
];
