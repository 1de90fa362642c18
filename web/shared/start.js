/** The commands are for the address at which this page was found. */
for (const place of document.querySelectorAll("[data-origin]")) {
  place.textContent = new URL(".", location.href).href.replace(/\/$/, "");
}
