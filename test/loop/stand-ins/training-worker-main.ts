// Runs the stand-in training worker as a process, where `npm start` would run the real one. Beside /readyz its health port
// takes `POST /hold` and `POST /release` (stop steps in their middle, let them go on) and `POST /figures` (what steps report in
// place of the usual, until the next call), and gives `GET /counts`.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import {
  baseSettings,
  createLogger,
  folderBlobStore,
  run,
  setting,
  wireSecurity,
  wireSettings,
  type Service,
} from '@backtalk/kit';
import { serveGrpc } from '@backtalk/kit/grpc';
import { TrainingWorkerServiceDefinition } from '@backtalk/proto/training';
import { z } from 'zod';
import { StandInTrainingWorker } from './training-worker.js';

const settings = {
  ...wireSettings,
  trainerToTraining: baseSettings.trainerToTraining,
  healthAddress: baseSettings.healthAddress,
  address: setting.address('BACKTALK_GRPC_ADDRESS', { description: 'Where the trainer calls.' }),
  baseModel: setting.string('BACKTALK_BASE_MODEL', { description: 'The base that it pretends to train.' }),
  cacheDir: setting.path('BACKTALK_BLOB_CACHE_DIR', { description: 'Where blobs are kept.' }),
};

async function serveControl(
  worker: StandInTrainingWorker,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const what = `${request.method ?? ''} ${request.url ?? ''}`;
  if (what === 'POST /figures') worker.figures = z.record(z.string(), z.number()).parse(await json(request));
  if (what === 'POST /hold') worker.hold(true);
  if (what === 'POST /release') worker.hold(false);
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(worker.counts));
}

await run({
  name: 'training-worker',
  config: settings,
  create: (config): Service => {
    const { address, healthAddress, baseModel, cacheDir } = config;
    const worker = new StandInTrainingWorker(folderBlobStore(cacheDir), baseModel);
    const control = createServer((request, response) => {
      serveControl(worker, request, response).catch(() => response.destroy());
    });
    const stops: (() => Promise<void> | void)[] = [];
    return {
      start: async () => {
        const server = await serveGrpc({
          address,
          services: [{ definition: TrainingWorkerServiceDefinition, implementation: worker.implementation() }],
          logger: createLogger({ service: 'training-worker', level: 'info' }),
          wire: wireSecurity(config),
        });
        stops.push(() => server.stop(0));
        await new Promise<void>((resolve) => control.listen(healthAddress.port, healthAddress.host, resolve));
        stops.push(() => {
          control.close();
          control.closeAllConnections();
        });
      },
      stop: async () => {
        for (const stop of stops.reverse()) await stop();
      },
    };
  },
});
