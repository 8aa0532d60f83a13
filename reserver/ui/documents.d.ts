/** Types of the documents that the page reads, from reserver/ui/documents.py and the commands. Not served. */

export type Amounts = Record<string, number>;

export interface Reservation {
  id: string;
  name: string;
  namespace: string;
  owners: string;
  amounts: Amounts;
  holds: string;
  slots: number;
  claimed: number;
  claims: string[];
  nodes: [string, number][];
  since: number | null;
  starts?: number | null;
  ends: number | null;
  /** The schedule in words; empty without one. */
  every?: string;
  /** Start and end of the hold in the next occurrences. */
  coming?: [number, number][];
  words: string;
  shape: string;
  why?: string;
  description: string;
  author: string;
  /** The priority below which pods may borrow. */
  lends?: number | null;
  isSeat?: boolean;
}

export interface Node {
  name: string;
  labels: Record<string, string>;
  windows: string[];
  allocatable: Amounts;
  requested: Amounts;
  held: Amounts;
  borrowed: Amounts;
}

export interface Move {
  name: string;
  namespace: string;
  pod: string;
  made: string;
  mode: string;
  paused: boolean;
  phase: string;
  reason: string;
  message: string;
  from: string;
  to: string;
}

/** A maintenance window. */
export interface Window {
  name: string;
  drains: number;
  starts: number;
  ends: number;
  progress: string;
}

/** The problem of a source and its start; or the seconds by which Reserver's clock is ahead. */
export interface Status {
  problem?: string;
  since?: number | null;
  seconds?: number;
}

export interface Hold {
  reservation: string;
  node: string;
  seconds_left: number | null;
}

export interface Explanation {
  pod: string;
  node: string;
  summary: string;
  available: number;
  exempt: boolean;
  reasons: { nodes: number; reason: string; examples: string[] }[];
  in_the_way: Hold[];
  more_in_the_way: number;
  owns: Hold[];
  pending: { reservation: string; reason: string; message: string }[];
}

export interface Waiting {
  count: number;
  pods: string[];
}

export interface PlannedMove {
  namespace: string;
  pod: string;
  from: string;
  to: string;
  strategy: string;
  reason: string;
  gain: number | null;
  cost: number;
}

/** Amounts as Kubernetes quantities. */
export interface NodeUse {
  node: string;
  allocatable: Record<string, string>;
  held: Record<string, string>;
  before: Record<string, string>;
  after: Record<string, string>;
}

export interface Plan {
  goal: string;
  policy: string;
  moves: PlannedMove[];
  kept: { namespace: string; pod: string; node: string; why: string }[];
  moreKept: number;
  landings: { namespace: string; pod: string; node: string }[];
  emptied: string[];
  nodes: NodeUse[];
  cost: number;
  gainPerMove: number | null;
  notes: string[];
}

export type Fate = 'used' | 'unused' | 'open';

export interface Teams {
  resource: string;
  unit: string;
  overTime: ({ begin: string } & Record<Fate, number>)[];
  owners: { namespace: string; hours: Partial<Record<Fate, number>> }[];
  /** Absent for the ceiling of all tenants together. */
  quotas: { namespace: string; name: string; hard: Record<string, string>; used: Record<string, string> }[];
}

export interface Watch {
  collection: string;
  obstacle: string;
  current: boolean;
  absent: boolean;
  lists: number;
  unreadable: number;
}

export interface Health {
  checks: { check: string; is_ok: boolean; said: string; remedy: string }[];
  problem?: string;
  versions: Record<string, string>;
  obstacles: string[];
  watches: Watch[] | string;
  queues: Record<string, number>;
  nodes: number;
  pods: number;
  reservations: number;
  metrics: string[];
}

/** The answer of each view. */
export interface Answers {
  explain: Explanation;
  waiting: Waiting;
  plan: Plan;
  teams: Teams;
  health: Health;
}
