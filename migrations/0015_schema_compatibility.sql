-- What a program may serve on: a schema newer than itself, where each migration
-- that it does not know says so.
--
-- During a deployment the schema is migrated first, and instances of the
-- release before go on for a while; they may also be restarted. A migration
-- says here which of them it still works with; one that says nothing stops
-- every older program at its next start.

create table leasehold.schema_compatibility (
    migration   bigint not null,
    serves_from bigint not null,

    constraint schema_compatibility_pkey primary key (migration),
    constraint schema_compatibility_not_newer check (serves_from between 1 and migration)
);

comment on table leasehold.schema_compatibility is
    'Which older programs a migration works with: those that know the migration serves_from. Without a row: none.';
