// What a dashboard is made of, as its authors write it: rows of panels, each with its queries and a text that explains it.
// Types only; grafana.ts turns them into what Grafana reads.

export interface Query {
  readonly expr: string;
  /** With `{{label}}` in it; without it Grafana shows all labels. */
  readonly legend: string;
}

/** `lines`: over time. `stacked`: over time, one upon another. `number` and `bars`: one value over the time range. */
export type PanelKind = 'lines' | 'stacked' | 'number' | 'bars';

/** Those of an alert that watches what the panel shows; beyond them the panel turns red. */
export interface Bounds {
  readonly alert: string;
  readonly above?: number;
  readonly below?: number;
}

export interface Panel {
  readonly title: string;
  /** For an operator who has never read the code: what is shown, what is normal, what to do. */
  readonly description: string;
  readonly kind: PanelKind;
  /** A unit of Grafana's: `short`, `s`, `ms`, `percentunit`, `reqps`, `ops`, `bytes`, `none`. */
  readonly unit: string;
  readonly queries: readonly Query[];
  /** Of 24; a third by default, a quarter for numbers. */
  readonly width?: number;
  readonly bounds?: Bounds;
  readonly min?: number;
  readonly max?: number;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  /** Name of the file, and part of the uid. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Whether a policy can be chosen beside the namespace. */
  readonly byPolicy: boolean;
  /** Whether pools of engines can be chosen. */
  readonly byPool?: boolean;
  readonly rows: readonly Row[];
}
