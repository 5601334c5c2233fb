// Command cotejo is the whole service: it loads official sources, serves the
// API, and checks its own answers. This package only wires: it assembles the
// operations, opens the data directory and prints.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// version is set by the build (-ldflags "-X main.version=…").
var version = "desarrollo"

// cli is the command line. Flags that are settings default to the configuration.
type cli struct {
	Config     string  `help:"Archivo de configuración." env:"COTEJO_CONFIG" placeholder:"ARCHIVO"`
	Data       *string `help:"Carpeta de datos." placeholder:"CARPETA"`
	PepperFile *string `name:"pepper-file" help:"Archivo con el secreto de las llaves." placeholder:"ARCHIVO"`
	TokenFile  *string `name:"banxico-token-file" help:"Archivo con el token del SIE de Banco de México." placeholder:"ARCHIVO"`
	Store      *string `help:"Base de datos PostgreSQL de las cuentas." placeholder:"URL"`
	StoreFile  *string `name:"store-file" help:"Archivo con esa dirección." placeholder:"ARCHIVO"`
	JSON       bool    `help:"Resultado en JSON."`

	Serve     serveCmd     `cmd:"" help:"Sirve la API."`
	Demo      demoCmd      `cmd:"" help:"Todo en marcha sobre un espejo local con datos sintéticos."`
	Ingest    ingestCmd    `cmd:"" help:"Descarga o lee una fuente, la revisa y la activa."`
	Check     checkCmd     `cmd:"" help:"Una respuesta sin servidor ni llave."`
	Lote      loteCmd      `cmd:"" help:"Verifica una lista de RFC en un servicio y deja los resultados en un archivo."`
	Verify    verifyCmd    `cmd:"" help:"Recalcula respuestas guardadas y compara sus hashes."`
	Recompute recomputeCmd `cmd:"" help:"Calcula de nuevo un registro desde su edición."`
	Accounts  struct {
		Create accountsCreate `cmd:"" help:"Crea una cuenta con sus organizaciones."`
		List   accountsList   `cmd:"" help:"Lista las cuentas y sus organizaciones."`
		Show   accountsShow   `cmd:"" help:"Muestra una cuenta: sus organizaciones, sus llaves y su saldo."`
	} `cmd:"" help:"Cuentas madre."`
	Orgs struct {
		Create orgsCreate `cmd:"" help:"Agrega una organización a una cuenta."`
	} `cmd:"" help:"Organizaciones de una cuenta."`
	Keys struct {
		Create     keysCreate     `cmd:"" help:"Crea una llave; se muestra una sola vez."`
		Rotate     keysRotate     `cmd:"" help:"Cambia una llave por otra; la anterior sirve un tiempo más."`
		Deactivate keysDeactivate `cmd:"" help:"Desactiva una llave en el acto."`
		Show       keysShow       `cmd:"" help:"Muestra de quién es una llave y qué fue de ella."`
		List       keysList       `cmd:"" help:"Lista las llaves de una organización o las de administración, sin su secreto."`
	} `cmd:"" help:"Llaves de la API."`
	Registro struct {
		Create     registroCreate     `cmd:"" help:"Crea una llave de registro; se muestra una sola vez."`
		List       registroList       `cmd:"" help:"Lista las llaves de registro, sin su secreto."`
		Deactivate registroDeactivate `cmd:"" help:"Desactiva una llave de registro para siempre."`
		Pending    registroPending    `cmd:"" help:"Lista los registros que esperan su código."`
		Code       registroCode       `cmd:"" help:"Emite otro código para un registro y lo muestra una sola vez, en lugar del que se envió."`
	} `cmd:"" help:"Registro de cuentas por sus dueños."`
	Wallet struct {
		Credit walletCredit `cmd:"" help:"Abona saldo de paquete."`
		Show   walletShow   `cmd:"" help:"Muestra saldo y lotes."`
	} `cmd:"" help:"Monedero."`
	Jobs struct {
		List jobsList `cmd:"" help:"Lista las tareas programadas y cómo terminó la última corrida de cada una."`
		Run  jobsRun  `cmd:"" help:"Corre una tarea ahora."`
	} `cmd:"" help:"Tareas programadas."`
	Sources struct {
		List   sourcesList   `cmd:"" help:"Lista las fuentes: qué responde, qué tan viejo es y cómo terminó el último intento."`
		Show   sourcesShow   `cmd:"" help:"Muestra las versiones de una fuente, con sus motivos, decisiones, avisos y listas parciales."`
		Accept sourcesAccept `cmd:"" help:"Pone en servicio una versión en cuarentena."`
		Reject sourcesReject `cmd:"" help:"Deja una versión en cuarentena para siempre: los mismos bytes no vuelven a levantar una alerta."`
	} `cmd:"" help:"Fuentes oficiales."`
	Snapshots struct {
		Rebuild snapshotsRebuild `cmd:"" help:"Lee otra vez los archivos oficiales, compara y repone lo que falte."`
	} `cmd:"" help:"Versiones guardadas."`
	Conf struct {
		Show configShow `cmd:"" help:"Muestra la configuración."`
	} `cmd:"" name:"config" help:"Configuración."`
	Backup  backupCmd  `cmd:"" help:"Respalda la carpeta de datos, también mientras se sirve."`
	Restore restoreCmd `cmd:"" help:"Comprueba un respaldo y hace de él una carpeta de datos nueva."`
	Export  exportCmd  `cmd:"" help:"Exporta las cuentas a tablas para SQL, o como evidencia, también mientras se sirve."`
	Doctor  doctorCmd  `cmd:"" help:"Revisa la carpeta de datos y la máquina."`
	Bench   struct {
		Measure  benchCmd         `cmd:"" default:"withargs" help:"Mide lo que se afirma, como razones."`
		Batch    benchBatchCmd    `cmd:"" help:"Mide listas de empresas: rapidez, memoria y disco, contra consultas sueltas."`
		Generate benchGenerateCmd `cmd:"" help:"Escribe archivos sintéticos con los formatos y tamaños oficiales."`
	} `cmd:"" help:"Mide lo que se afirma, como razones."`
	Bare    benchBareCmd `cmd:"" name:"bench-bare" hidden:""`
	Version versionCmd   `cmd:"" help:"Versión del programa."`
}

// app is what every command gets.
type app struct {
	ctx            context.Context
	config         configuration
	json           bool
	stdout, stderr io.Writer
	// late is what failed after the command had done its work: its result is
	// printed first.
	late error
}

// print writes v as one JSON document, or calls human.
func (a *app) print(v any, human func()) error {
	if !a.json {
		human()
		return nil
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func main() {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// The first signal asks the command to end cleanly; a second one ends it.
	go func() {
		<-signals
		stop()
		if again := <-signals; again == os.Interrupt {
			os.Exit(exitInterrupted)
		}
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c cli
	parser, err := kong.New(&c, kong.Name("cotejo"),
		kong.Description("Respuestas de fuentes oficiales versionadas, que se pueden recalcular."),
		kong.Writers(stdout, stderr), kong.Exit(func(code int) { panic(parserExit(code)) }),
		kong.UsageOnError())
	if err != nil {
		panic(err) // the struct above is wrong
	}
	code, err := parseAndRun(ctx, parser, &c, args, stdout, stderr)
	if err == nil {
		return code
	}
	code = exitCode(err)
	if step := nextStep(err); step != "" {
		err = fmt.Errorf("%w; %s", err, step)
	}
	if c.JSON {
		_ = json.NewEncoder(stderr).Encode(map[string]any{
			"message_type": "exit_error", "code": code, "message": err.Error(),
		})
	} else {
		fmt.Fprintf(stderr, "error: %v\n", err)
	}
	return code
}

// parserExit carries the exit of --help out of the parser.
type parserExit int

func parseAndRun(ctx context.Context, parser *kong.Kong, c *cli, args []string, stdout, stderr io.Writer) (code int, err error) {
	defer func() {
		if r := recover(); r != nil {
			exit, ok := r.(parserExit)
			if !ok {
				panic(r)
			}
			code = int(exit)
		}
	}()
	command, err := parser.Parse(args)
	if err != nil {
		return 0, exitWith(exitUsage, "%v. Vea «cotejo --help»", err)
	}
	flags := map[string]string{}
	for _, f := range command.Flags() {
		// A flag that is a setting is a *string: nil unless it was given.
		if s, ok := f.Target.Interface().(*string); ok && s != nil {
			flags[settingOf(f.Name)] = *s
		}
	}
	config, err := loadConfiguration(c.Config, flags, environment())
	if err != nil {
		return 0, &exitError{exitConfig, err}
	}
	a := &app{ctx: ctx, config: config, json: c.JSON, stdout: stdout, stderr: stderr}
	err = command.Run(a)
	return 0, errors.Join(err, a.late)
}

// settingOf turns a flag's name into its setting's: --pepper-file is pepper_file.
func settingOf(flag string) string {
	b := []byte(flag)
	for i := range b {
		if b[i] == '-' {
			b[i] = '_'
		}
	}
	return string(b)
}

type versionCmd struct{}

func (versionCmd) Run(app *app) error {
	v := struct {
		Version string `json:"version"`
		Format  int    `json:"formato"`
		Engine  string `json:"engine_version"`
	}{version, dataFormat, engineVersion}
	return app.print(v, func() {
		fmt.Fprintf(app.stdout, "cotejo %s (formato de datos %d, motor %s)\n", v.Version, v.Format, v.Engine)
	})
}
