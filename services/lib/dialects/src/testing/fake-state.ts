// What a fake engine holds, for its routes and its streams. Only types.
import type { FakeAdapters } from './fake-adapters.js';
import type { FakePlaces } from './fake-places.js';
import type { FakeCounts, FakeSettings } from './fake-settings.js';

/** What the routes of a fake engine share. */
export interface FakeState {
  readonly baseModel: string;
  readonly apiKey: string | undefined;
  readonly settings: FakeSettings;
  readonly counts: FakeCounts;
  readonly adapters: FakeAdapters;
  readonly places: FakePlaces;
}
