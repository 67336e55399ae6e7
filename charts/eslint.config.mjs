// `npx eslint` over the scripts of the page, joined as the page joins them: `make lint-page`.
const names = [
  "document", "vega", "location", "history", "addEventListener", "innerWidth", "navigator",
  "getSelection", "setTimeout", "clearTimeout", "URL", "URLSearchParams", "Blob", "Option",
];

export default [
  {
    languageOptions: {
      sourceType: "script",
      globals: Object.fromEntries(names.map((name) => [name, "readonly"])),
    },
    rules: {
      "no-undef": "error",
      "no-unused-vars": "error",
      "no-redeclare": "error",
      "no-shadow": "error",
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "prefer-const": "error",
      eqeqeq: ["error", "smart"],
    },
  },
];
