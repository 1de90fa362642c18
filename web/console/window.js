/** Which rows of a long list are to be drawn: those in sight, and a few on either side. */
export function inSight({ scrollTop, height, rowHeight, length, around = 6 }) {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - around);
  const last = Math.min(length, Math.ceil((scrollTop + height) / rowHeight) + around);
  return { first: Math.min(first, last), last };
}

/** Where to scroll so that a row is in sight; the same place where it is already. */
export function toShow(index, { scrollTop, height, rowHeight }) {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + height) return top + rowHeight - height;
  return scrollTop;
}
