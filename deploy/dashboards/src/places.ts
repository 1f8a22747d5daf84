// Where the chart keeps what this package makes. In: nothing. Out: paths; they are the same from src/ and from dist/.
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const chartFiles = fileURLToPath(new URL('../../../charts/backtalk/files', import.meta.url));
