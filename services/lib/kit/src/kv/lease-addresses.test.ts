import { describe, expect, it } from 'vitest';
import { leaseAddresses } from './leases.js';

const ports = { grpc: 30_020, health: 30_010 };

describe('addresses of a lease', () => {
  it('a lease’s addresses are those that the part listens on, with the ports that it was given', () => {
    const loopback = { grpcAddress: { host: '127.0.0.1' }, healthAddress: { host: 'localhost' }, grpcAdvertised: '' };
    expect(leaseAddresses(loopback, ports)).toEqual({
      grpcAddress: '127.0.0.1:30020',
      healthAddress: 'localhost:30010',
    });
  });

  it('an address of IPv6 stands in brackets', () => {
    const loopback = { grpcAddress: { host: '::1' }, healthAddress: { host: '::1' }, grpcAdvertised: '' };
    expect(leaseAddresses(loopback, ports)).toEqual({ grpcAddress: '[::1]:30020', healthAddress: '[::1]:30010' });
  });

  it.each([
    ['10.1.2.3:30020', '10.1.2.3:30010'],
    ['[fd00::1]:30020', '[fd00::1]:30010'],
    ['gateway:30020', 'gateway:30010'],
  ])('leases advertise the named host where the part listens on every address: %s', (grpcAdvertised, healthAddress) => {
    const everywhere = { grpcAddress: { host: '0.0.0.0' }, healthAddress: { host: '0.0.0.0' }, grpcAdvertised };
    expect(leaseAddresses(everywhere, ports)).toEqual({ grpcAddress: grpcAdvertised, healthAddress });
  });
});
