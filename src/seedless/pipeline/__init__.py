"""The one place that wires the rooms: config -> prepared data -> trained -> sealed -> scored."""
