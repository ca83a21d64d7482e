// What the page knows of teachers and batches, changed by events; bounded whatever comes.

const MOST_FLIGHTS = 4;
const SILENT_SECONDS = 900;
const ENDED = ["released", "aborted"];

export class LiveState {
  constructor() {
    this.teachers = new Map();
    this.flights = new Map();
    this.events = 0;
    this.told = new Map(); // of each teacher: whether it is online, and which event said so
  }

  // `since` is how many events there were when these views were asked for: what came later is newer than they are.
  setTeachers(views, since) {
    for (const view of views) {
      const told = this.told.get(view.teacher);
      if (told && told.event > since) view.is_online = told.is_online;
    }
    this.teachers = new Map(views.map((view) => [view.teacher, view]));
  }

  // Returns whether a batch ended, so that budget and releases have changed.
  apply(event) {
    this.events += 1;
    if (event.kind === "teacher") {
      const teacher = this.teachers.get(event.teacher);
      if (teacher) Object.assign(teacher, { is_online: event.is_online });
      const isKnown = teacher || this.teachers.size === 0;
      if (isKnown) this.told.set(event.teacher, { is_online: event.is_online, event: this.events });
      return false;
    }
    this.#applyToFlight(event);
    if (event.stage === "ballots") this.#noteAnswer(event);
    return ENDED.includes(event.stage);
  }

  #applyToFlight(event) {
    const flight = this.flights.get(event.batch) ?? { batch: event.batch, queries: event.queries, stages: {}, voters: {} };
    const earlier = flight.stages[event.stage];
    flight.stages[event.stage] = { at: earlier?.at ?? event.at, last: event.at, done: event.done, of: event.of };
    flight.stage = event.stage;
    if (event.stage === "ballots") {
      flight.voters[event.teacher] = true;
      flight.ballotBytes = event.size_bytes;
    }
    flight.reason = event.reason;
    flight.isOver = ENDED.includes(event.stage);
    this.flights.set(event.batch, flight);
    this.#forgetOldest();
  }

  // Those that are over go first.
  #forgetOldest() {
    while (this.flights.size > MOST_FLIGHTS) {
      const over = [...this.flights.values()].find((flight) => flight.isOver);
      this.flights.delete((over ?? this.flights.values().next().value).batch);
    }
  }

  // The end of a batch may be among the events that a slow reader loses.
  forgetSilent(now) {
    for (const flight of this.flights.values()) {
      if (!flight.isOver && flight.stages[flight.stage].last < now - SILENT_SECONDS) this.flights.delete(flight.batch);
    }
  }

  #noteAnswer(event) {
    const teacher = this.teachers.get(event.teacher);
    if (teacher) {
      teacher.ballots += 1;
      teacher.answered_at = event.at;
      teacher.has_missed_last = false;
    }
  }
}
