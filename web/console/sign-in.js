import { ask, credential } from "./api.js";
import { h } from "./dom.js";
import { notice, sentence, title } from "./parts.js";

/** Asks for a key or token, which this tab keeps; `onDone` once the service takes it. */
export function signInView({ onDone, refused }) {
  const problem = notice();
  if (refused) problem.show(refused);
  const field = h("input", {
    type: "password",
    id: "credential",
    required: true,
    autocomplete: "off",
    spellcheck: "false",
    "aria-describedby": "credential-text",
  });
  const button = h("button", { type: "submit", class: "primary", text: "Sign in" });

  async function submit(event) {
    event.preventDefault();
    const token = field.value.trim();
    button.disabled = true;
    problem.clear();
    try {
      await ask("GET", "/rooms?limit=1", { token });
    } catch (error) {
      // What a credential may not list it may still have rooms of.
      if (error.status !== 403) {
        problem.show(error.status === 401 ? "The service does not take it: it is wrong, or has ended." : sentence(error));
        button.disabled = false;
        field.focus();
        return;
      }
    }
    credential.set(token);
    onDone();
  }

  return {
    title: "Sign in",
    element: h(
      "div",
      { class: "view narrow" },
      h("header", { class: "view-head" }, title("Sign in")),
      h(
        "form",
        { class: "panel pad sign-in", onsubmit: submit },
        h("label", { for: "credential", text: "Server key or token" }),
        field,
        h("p", {
          id: "credential-text",
          class: "muted",
          text: "Kept in this tab until it is closed, and sent to this service only. A server key, or a token with the scope admin, sees everything.",
        }),
        problem.element,
        h("div", { class: "buttons" }, button),
      ),
    ),
  };
}
