"use strict";

SwaggerUIBundle({ url: "/openapi.json", dom_id: "#main", docExpansion: "list", validatorUrl: null });
