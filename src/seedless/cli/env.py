"""`seedless env`: what on this machine changes bits."""

from seedless.cli.options import AsJson, ConfigFile, Settings, print_json, read_config


def env(as_json: AsJson = False, config: ConfigFile = None, settings: Settings = None) -> None:
    """Show versions, processor, threads and flags that change bits."""
    import typer

    from seedless.core.digests import digest_value
    from seedless.numerics.determinism import make_deterministic
    from seedless.numerics.environment import capture_environment

    execution = read_config(config, settings).execution
    make_deterministic(threads=execution.threads, tf32=execution.precision == "tf32")
    environment = capture_environment()
    if as_json:
        print_json({**environment, "digest": digest_value(environment)})
        return
    for section, content in environment.items():
        if isinstance(content, dict):
            typer.echo(section)
            for key, value in content.items():
                typer.echo(f"  {key:<28} {'; '.join(value) if isinstance(value, list) else value}")
        elif isinstance(content, list):
            for number, device in enumerate(content):
                typer.echo(f"device {number}")
                for key, value in device.items():
                    typer.echo(f"  {key:<28} {value}")
            if not content:
                typer.echo("devices: none (CPU only)")
        else:
            typer.echo(f"{section:<30} {content}")
    typer.echo(f"{'digest':<30} {digest_value(environment)}")
