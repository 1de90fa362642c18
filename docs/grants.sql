-- What the role needs with which the service serves, and no more: run it as the
-- owner of the schema, after each migration, with the role's own name.
-- `leasehold migrate`, `cell own` and `cell move` need the owner; `sweep`, `purge` and `verify` do not.

grant usage on schema leasehold to leasehold_service;

-- Every table and view, and the bookkeeping of the migrations.
grant select on all tables in schema leasehold to leasehold_service;

-- The functions run with the rights of who calls them.
grant execute on all functions in schema leasehold to leasehold_service;
grant insert, update, delete on
    leasehold.rooms,
    leasehold.members,
    leasehold.blocks,
    leasehold.closed_generations,
    leasehold.epoch_floors,
    leasehold.generation_floors,
    leasehold.generation_purges,
    leasehold.webhooks,
    leasehold.webhook_deliveries
    to leasehold_service;

-- What happened is never changed: a purge removes it, and an erasure takes out of it who it was.
grant insert, delete on leasehold.membership_events to leasehold_service;
grant update (user_id, device_id, join_id, info, ended_by, note) on leasehold.membership_events to leasehold_service;
grant insert, update on leasehold.erased_floors to leasehold_service;
grant insert on leasehold.erasures to leasehold_service;
grant update on leasehold.sweeps, leasehold.purges to leasehold_service;

-- Nothing changes it; a transaction at a stricter level than read committed locks it.
grant update (fences) on leasehold.cell to leasehold_service;

-- The lease clock.
grant update on leasehold.pulse to leasehold_service;
grant insert on leasehold.outages to leasehold_service;
