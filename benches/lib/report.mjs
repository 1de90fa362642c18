// The one table and its JSON.
import { writeFileSync } from "node:fs";

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function rounded(value) {
  if (value >= 1_000) return whole.format(value);
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function cost(sample) {
  const parts = [sample.serviceCpuUs, sample.databaseCpuUs].filter((part) => part !== null && part !== undefined);
  return parts.length === 0 ? "" : ` · cpu ${parts.map((part) => part.toFixed(0)).join("+")} µs`;
}

function latency(sample) {
  return sample.p50Ms === undefined || sample.p50Ms === null ? "" : ` · p50 ${rounded(sample.p50Ms)} p99 ${rounded(sample.p99Ms)} ms`;
}

function cell(sample, withName) {
  if (sample === null) return "";
  const name = withName ? `${sample.name}: ` : "";
  if (sample.value !== undefined) return `${name}${rounded(sample.value)} ${sample.unit}${sample.note ? ` (${sample.note})` : ""}`;
  return `${name}${rounded(sample.perSecond)}/s${latency(sample)}${cost(sample)}`;
}

const COLUMNS = ["figure", "ours", "baseline", "ratio", "target", "met?"];
const RIGHT_ALIGNED = new Set([3]);

function cells(row) {
  const { met } = row;
  return [
    row.figure,
    cell(row.ours, row.ours.name !== undefined && row.ours.name !== "Leasehold"),
    cell(row.baseline, true),
    row.ratio === null ? "" : `${row.ratio.toFixed(2)} ×`,
    row.target ?? "",
    met === null ? "" : met ? "yes" : "NO",
  ];
}

export function table(rows) {
  const lines = [COLUMNS, ...rows.map(cells)];
  const widths = COLUMNS.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const format = (line) =>
    `| ${line.map((text, column) => (RIGHT_ALIGNED.has(column) ? text.padStart(widths[column]) : text.padEnd(widths[column]))).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (RIGHT_ALIGNED.has(column) ? `${"-".repeat(width + 1)}:` : "-".repeat(width + 2))).join("|")}|`;
  return [format(lines[0]), rule, ...lines.slice(1).map(format)].join("\n");
}

export const LEGEND =
  "cpu: CPU time per request, in the service + in its database. p50 and p99 as the client saw them. " +
  "Rates are medians of alternating rounds in one run.";

export function writeJson(path, environment, rows) {
  writeFileSync(path, `${JSON.stringify({ environment, rows }, null, 2)}\n`);
}
