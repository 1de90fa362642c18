import { h } from "./dom.js";

/**
 * Asks before something is done that others notice. Resolves with the values of the fields, or null where it
 * is called off. A field is `{name, label, options?, maxLength?}`.
 */
export function confirm({ heading, text, action, isDanger = true, fields = [] }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => [field, input(field)]);
    const done = (values) => {
      dialog.close();
      dialog.remove();
      resolve(values);
    };
    const dialog = h(
      "dialog",
      {
        class: "dialog",
        "aria-labelledby": "confirm-heading",
        "aria-describedby": "confirm-text",
        oncancel: (event) => (event.preventDefault(), done(null)),
      },
      h(
        "form",
        {
          method: "dialog",
          onsubmit: (event) => {
            event.preventDefault();
            done(Object.fromEntries(inputs.map(([{ name }, element]) => [name, element.value])));
          },
        },
        h("h2", { id: "confirm-heading" }, h("bdi", { text: heading })),
        h("p", { id: "confirm-text", text }),
        inputs.map(([{ name, label }, element]) =>
          h("div", { class: "field" }, h("label", { for: `confirm-${name}`, text: label }), element),
        ),
        h(
          "div",
          { class: "buttons" },
          h("button", { type: "button", text: "Cancel", onclick: () => done(null) }),
          h("button", { type: "submit", class: `primary${isDanger ? " danger" : ""}`, text: action }),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  });
}

function input({ name, options, maxLength }) {
  const id = `confirm-${name}`;
  if (!options) return h("input", { id, type: "text", maxlength: maxLength, autocomplete: "off" });
  return h(
    "select",
    { id },
    options.map(([value, text]) => h("option", { value, text })),
  );
}
