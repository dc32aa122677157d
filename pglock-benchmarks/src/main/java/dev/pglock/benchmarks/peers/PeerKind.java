package dev.pglock.benchmarks.peers;

import dev.pglock.LockStrategy;

/** Who is compared. */
public enum PeerKind {
    FLOOR("floor: a `SELECT 1` each", false) {
        @Override
        public Peer open(Place place) {
            return new FloorPeer(place);
        }
    },
    LEASE("pglock, lease", true) {
        @Override
        public Peer open(Place place) {
            return PglockPeer.open(place, LockStrategy.LEASE);
        }
    },
    ADVISORY("pglock, advisory", true) {
        @Override
        public Peer open(Place place) {
            return PglockPeer.open(place, LockStrategy.ADVISORY);
        }
    },
    SHEDLOCK("ShedLock", false) {
        @Override
        public Peer open(Place place) {
            return ShedLockPeer.open(place, false);
        }
    },
    SHEDLOCK_KEEP_ALIVE("ShedLock, keep-alive", false) {
        @Override
        public Peer open(Place place) {
            return ShedLockPeer.open(place, true);
        }
    },
    SPRING_INTEGRATION("Spring Integration", true) {
        @Override
        public Peer open(Place place) {
            return SpringIntegrationPeer.open(place);
        }
    };

    private final String title;
    private final boolean waits;

    PeerKind(String title, boolean waits) {
        this.title = title;
        this.waits = waits;
    }

    /** What it is called in tables. */
    public String title() {
        return title;
    }

    /** Whether it can wait for a lock at all. */
    public boolean waits() {
        return waits;
    }

    /** A replica of it. */
    public abstract Peer open(Place place);

    /** All tables of all of them. */
    public static String schema() {
        return PglockPeer.SCHEMA + ShedLockPeer.SCHEMA + SpringIntegrationPeer.SCHEMA;
    }
}
