// The part of asciichart that the CLI uses; the package brings no types of its own.

declare module 'asciichart' {
  export interface PlotConfig {
    readonly height?: number;
    readonly min?: number;
    readonly max?: number;
  }
  export function plot(series: readonly number[], config?: PlotConfig): string;
}
