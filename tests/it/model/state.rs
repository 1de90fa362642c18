//! All that is in the tables, as text: what the rules say, and what Postgres holds.

use chrono::{DateTime, Utc};

use super::super::support::{Database, t};
use super::rules::Rules;

fn ms(instant: DateTime<Utc>) -> i64 {
    (instant - t(0)).num_milliseconds()
}

/// Members, rooms, lifetimes and history according to the rules, sorted.
pub fn expected(rules: &Rules) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, room) in &rules.rooms {
        lines.push(format!(
            "room {id} {} {} {} {} {}",
            room.generation,
            room.version,
            room.opened_at,
            room.people.len(),
            room.peak
        ));
        for person in &room.people {
            for (device, s) in &person.sessions {
                lines.push(format!(
                    "member {id} {} {device:?} {} {} {} {} {} {} {} {:?} {:?}",
                    person.user,
                    s.epoch,
                    person.arrival,
                    person.arrived_at,
                    s.joined_at,
                    s.seen_at,
                    s.lease_end,
                    s.lease_ms,
                    s.cursor,
                    s.metadata
                ));
            }
        }
    }
    for ((id, generation), lifetime) in &rules.lifetimes {
        lines.push(format!(
            "lifetime {id} {generation} {} {:?}",
            lifetime.opened_at, lifetime.closed
        ));
    }
    for e in &rules.events {
        lines.push(format!(
            "event {} {} {} {} {:?} {} {:?} {} {} {}",
            e.room,
            e.generation,
            e.version,
            e.user,
            e.device,
            e.epoch,
            e.end,
            e.occurred_at,
            e.recorded_at,
            e.people
        ));
    }
    lines.sort();
    lines
}

/// The same from the tables.
pub async fn actual(database: &Database) -> Vec<String> {
    let pool = &database.pool;
    let mut lines = Vec::new();
    let rooms = sqlx::query!(
        "select room_id, generation, version, opened_at, member_count, peak_members from leasehold.rooms"
    );
    for r in rooms.fetch_all(pool).await.unwrap() {
        lines.push(format!(
            "room {} {} {} {} {} {}",
            r.room_id,
            r.generation,
            r.version,
            ms(r.opened_at),
            r.member_count,
            r.peak_members
        ));
    }
    let members = sqlx::query!(
        r#"select m.*, leasehold.instant(m.lease_end) as "lease_end_at!" from leasehold.members m"#
    );
    for m in members.fetch_all(pool).await.unwrap() {
        lines.push(format!(
            "member {} {} {:?} {} {} {} {} {} {} {} {:?} {:?}",
            m.room_id,
            m.user_id,
            m.device_id,
            m.epoch,
            m.arrival,
            ms(m.arrived_at),
            ms(m.joined_at),
            ms(m.last_seen_at),
            ms(m.lease_end_at),
            m.lease_ms,
            m.cursor.and_then(|json| json.as_i64()),
            m.metadata.and_then(|json| json.as_i64())
        ));
    }
    let open = sqlx::query!("select room_id, generation, opened_at from leasehold.rooms");
    for r in open.fetch_all(pool).await.unwrap() {
        let opened = ms(r.opened_at);
        let closed: Option<(i64, String, i64, i32)> = None;
        lines.push(format!(
            "lifetime {} {} {opened} {closed:?}",
            r.room_id, r.generation
        ));
    }
    let closed = sqlx::query!(
        "select room_id, generation, opened_at, closed_at, close_reason, closed_version, peak_members
           from leasehold.closed_generations"
    );
    for g in closed.fetch_all(pool).await.unwrap() {
        let opened = ms(g.opened_at);
        let closed = Some((
            ms(g.closed_at),
            g.close_reason,
            g.closed_version,
            g.peak_members,
        ));
        lines.push(format!(
            "lifetime {} {} {opened} {closed:?}",
            g.room_id, g.generation
        ));
    }
    let events = sqlx::query!(
        "select room_id, generation, version, user_id, device_id, epoch, reason,
                occurred_at, recorded_at, last_seen_at, member_count
           from leasehold.membership_events"
    );
    for e in events.fetch_all(pool).await.unwrap() {
        let end = e.reason.map(|reason| (reason, ms(e.last_seen_at.unwrap())));
        lines.push(format!(
            "event {} {} {} {} {:?} {} {end:?} {} {} {}",
            e.room_id,
            e.generation,
            e.version,
            e.user_id,
            e.device_id,
            e.epoch,
            ms(e.occurred_at),
            ms(e.recorded_at),
            e.member_count
        ));
    }
    lines.sort();
    lines
}
