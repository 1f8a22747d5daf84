// A start that cannot go on: one line for the person, which names what is wrong and what to do.

export class SetupRefusal extends Error {
  constructor(line) {
    super(line);
    this.name = 'SetupRefusal';
  }
}
